// The query page: run, cancel, and complete.
"use strict"
const form = document.querySelector("[data-query]"), text = form.elements.text, language = form.elements.language
const results = document.querySelector("[data-results]"), busy = document.querySelector("[data-busy]")
const cancel = document.querySelector("[data-cancel]")
let running = null

async function run(prefix = "") {
  running?.abort()
  const mine = running = new AbortController(), began = Date.now()
  cancel.hidden = false
  const tick = setInterval(() => busy.textContent = `running for ${Math.round((Date.now() - began) / 1000)} s`, 1000)
  history.replaceState(null, "", `?${new URLSearchParams({language: language.value, text: text.value})}`)
  try {
    const answer = await post("/query", {language: language.value, text: prefix + text.value}, mine.signal)
    results.innerHTML = await answer.text()
    if (answer.headers.has("x-position")) showPosition(answer.headers.get("x-position"))
    serviceIs("live", "live")
  } catch (error) {
    if (mine.signal.aborted) results.innerHTML = "<p class=muted role=status>Cancelled. Nothing was changed unless the statement had already been committed.</p>"
    else {
      serviceIs("down", "not reached")
      results.innerHTML = "<div class=problem role=alert><p>The service did not answer.</p><p class=muted>Your text is still here. Run it again when the service is back.</p></div>"
    }
  } finally {
    clearInterval(tick)
    if (running === mine) {
      busy.textContent = ""
      cancel.hidden = true
      running = null
    }
  }
}
form.addEventListener("submit", event => { event.preventDefault(); run() })
const plan = form.querySelector("[data-plan]"), watch = form.querySelector("[data-watch]")
function showChoices() { plan.hidden = watch.hidden = language.value !== "sql" }
plan.addEventListener("click", () => run("EXPLAIN "))
watch.addEventListener("click", () => sessionStorage.setItem("harken-continual ", `CREATE CONTINUAL QUERY AS\n${text.value.trim().replace(/;$/, "")}`))
language.addEventListener("change", showChoices)
showChoices()
cancel.addEventListener("click", () => running?.abort())

// What is typed is kept, also if the page is left by mistake.
const KEPT = "harken-query"
text.addEventListener("input", () => sessionStorage.setItem(KEPT, text.value))
if (!text.value) text.value = sessionStorage.getItem(KEPT) ?? ""

let list = null
function closeList() {
  list?.remove()
  list = null
  text.removeAttribute("aria-activedescendant")
}
function take(item) {
  const {name, length} = item.dataset, at = text.selectionStart - Number(length)
  text.setRangeText(name, at, text.selectionStart, "end")
  text.dispatchEvent(new Event("input"))
  closeList()
  text.focus()
}
async function complete() {
  const answer = await post("/query/complete", {language: language.value, text: text.value, at: text.selectionStart})
  if (!answer.ok) return
  const {found, length} = await answer.json()
  closeList()
  if (!found.length) return
  list = document.createElement("ul")
  list.className = "completions"
  list.role = "listbox"
  list.ariaLabel = "Completions"
  list.append(...found.map(([name, kind], index) => {
    const item = document.createElement("li"), note = document.createElement("span")
    item.role = "option"
    item.id = `completion-${index}`
    item.dataset.name = name
    item.dataset.length = length
    note.textContent = kind
    item.append(name, note)
    item.ariaSelected = String(index === 0)
    item.addEventListener("mousedown", event => { event.preventDefault(); take(item) })
    return item
  }))
  const lines = text.value.slice(0, text.selectionStart).split("\n")
  list.style.top = `${Math.min(lines.length * 19.5 + 16, text.clientHeight)}px`
  list.style.left = `${Math.min(lines.at(-1).length * 7.8 + 12, text.clientWidth - 200)}px`
  text.parentElement.append(list)
  if (found.length === 1) take(list.firstElementChild)
}
text.addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run()
  else if (event.key === " " && event.ctrlKey) complete()
  else if (list && event.key === "Escape") closeList()
  else if (list && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    const items = [...list.children], at = items.findIndex(each => each.ariaSelected === "true")
    const next = Math.max(0, Math.min(items.length - 1, at + (event.key === "ArrowDown" ? 1 : -1)))
    items.forEach((each, index) => each.ariaSelected = String(index === next))
    items[next].scrollIntoView({block: "nearest"})
  } else if (list && (event.key === "Enter" || event.key === "Tab")) take(list.querySelector("[aria-selected=true]"))
  else {
    if (event.key.length === 1 || event.key === "Backspace") closeList()
    return
  }
  event.preventDefault()
})
text.addEventListener("blur", closeList)
if (text.value && new URLSearchParams(location.search).get("text") && form.dataset.query === "run") run()
