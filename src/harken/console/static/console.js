// What every page does: relative times, sorting of plain tables, the palette, and the state of the service.
"use strict"
const csrf = document.querySelector("meta[name=csrf]").content

const UNITS = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]]
const relative = new Intl.RelativeTimeFormat("en", {numeric: "auto"})
function ago(date) {
  const seconds = (date - Date.now()) / 1000
  for (const [unit, length] of UNITS)
    if (Math.abs(seconds) >= length) return relative.format(Math.trunc(seconds / length), unit)
  return Math.abs(seconds) < 10 ? "just now" : relative.format(Math.trunc(seconds), "second")
}
function showTimes() {
  for (const each of document.querySelectorAll("time[datetime]")) each.textContent = ago(new Date(each.dateTime))
}
showTimes()
setInterval(showTimes, 10000)

// Values sort as numbers where both are numbers; null comes last.
function compare(a, b) {
  if (a === b) return 0
  if (a === null) return 1
  if (b === null) return -1
  const x = Number(a), y = Number(b)
  if (a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y) && x !== y) return x - y
  return String(a) < String(b) ? -1 : 1
}
function turnSort(header) {
  const down = header.getAttribute("aria-sort") === "ascending"
  for (const each of header.parentElement.children) each.removeAttribute("aria-sort")
  header.setAttribute("aria-sort", down ? "descending" : "ascending")
  return down ? -1 : 1
}
document.addEventListener("click", event => {
  const header = event.target.closest("table[data-sortable] th")
  if (!header || !event.target.closest("button")) return
  const body = header.closest("table").tBodies[0], index = header.cellIndex, sign = turnSort(header)
  const value = row => row.cells[index].querySelector(".null") ? null : row.cells[index].textContent.trim()
  const rows = [...body.rows].map(row => [value(row), row])
  rows.sort(([a], [b]) => a === null || b === null ? compare(a, b) : sign * compare(a, b))
  body.append(...rows.map(([, row]) => row))
})

// The state of the service: one dot with a word.
function serviceIs(state, text) {
  const place = document.querySelector("[data-service]")
  place.firstElementChild.className = `dot ${state}`
  place.lastElementChild.textContent = text
}
function showPosition(position) {
  document.querySelector("[data-position]").textContent = Number(position).toLocaleString("en")
}

async function post(path, data, signal) {
  return fetch(path, {
    method: "POST", signal, body: JSON.stringify(data),
    headers: {"content-type": "application/json", "x-csrf": csrf},
  })
}

// The palette: `/` or Ctrl-K opens it.
const palette = document.querySelector("[data-palette-dialog]")
const paletteInput = palette.querySelector("input"), paletteList = palette.querySelector("ul")
let paletteAsked = 0
function openPalette() {
  paletteInput.value = ""
  palette.showModal()
  fillPalette()
}
async function fillPalette() {
  const mine = ++paletteAsked
  const answer = await fetch(`/search?q=${encodeURIComponent(paletteInput.value)}`)
  if (mine !== paletteAsked || !answer.ok) return
  const {found} = await answer.json()
  paletteList.replaceChildren(...found.map(({title, kind, path}, index) => {
    const item = document.createElement("li"), link = document.createElement("a"), note = document.createElement("span")
    item.id = `palette-${index}`
    item.role = "option"
    link.href = path
    link.tabIndex = -1
    link.textContent = title
    note.textContent = kind
    link.append(note)
    item.append(link)
    return item
  }))
  if (!found.length) {
    const none = document.createElement("li")
    none.className = "muted"
    none.textContent = "Nothing has such a name."
    paletteList.append(none)
  }
  choose(0)
}
function choose(index) {
  const items = [...paletteList.querySelectorAll("[role=option]")]
  items.forEach((each, at) => each.setAttribute("aria-selected", String(at === index)))
  items[index]?.scrollIntoView({block: "nearest"})
  paletteInput.setAttribute("aria-activedescendant", items[index]?.id ?? "")
}
paletteInput.addEventListener("input", fillPalette)
palette.addEventListener("keydown", event => {
  const items = [...paletteList.querySelectorAll("[role=option]")]
  const chosen = items.findIndex(each => each.getAttribute("aria-selected") === "true")
  if (event.key === "ArrowDown") choose(Math.min(chosen + 1, items.length - 1))
  else if (event.key === "ArrowUp") choose(Math.max(chosen - 1, 0))
  else if (event.key === "Enter") items[chosen]?.querySelector("a").click()
  else return
  event.preventDefault()
})
palette.addEventListener("click", event => { if (event.target === palette) palette.close() })
for (const each of document.querySelectorAll("[data-palette]")) each.addEventListener("click", openPalette)
document.addEventListener("keydown", event => {
  const typing = event.target.matches("input, textarea, select, [contenteditable]")
  if ((event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !typing)) {
    event.preventDefault()
    openPalette()
  }
})

// A message at the bottom of the page, with a way back if there is one.
function toast(text, undo) {
  document.querySelector(".toast")?.remove()
  const made = document.createElement("div")
  made.className = "toast"
  made.role = "status"
  made.append(text)
  if (undo) {
    const button = document.createElement("button")
    button.type = "button"
    button.textContent = "Undo"
    button.addEventListener("click", () => { made.remove(); undo() })
    made.append(button)
  }
  document.body.append(made)
  setTimeout(() => made.remove(), 10000)
}

// An address is a link; an image is loaded when somebody clicks, and not before.
function linked(cell, place, address) {
  const link = document.createElement("a")
  link.href = address
  link.target = "_blank"
  link.rel = "noopener noreferrer"
  link.textContent = address.length > 60 ? `${address.slice(0, 60)}…` : address
  place.append(link)
  if (/\.(png|jpe?g|gif|webp|svg)([?#]|$)/i.test(address)) {
    const button = document.createElement("button")
    button.type = "button"
    button.className = "link"
    button.dataset.image = address
    button.textContent = "show"
    place.append(" ", button)
  }
  return cell
}
document.addEventListener("click", ({target}) => {
  if (!target.dataset?.image) return
  const image = new Image()
  image.className = "thumbnail"
  image.alt = "the image at this address"
  image.referrerPolicy = "no-referrer"
  image.src = target.dataset.image
  target.replaceWith(image)
})
