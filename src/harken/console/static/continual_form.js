// The form of a continual query and its text: two views of one statement, always in step.
"use strict"
const form = document.querySelector("[data-continual]"), statement = form.querySelector("[data-statement]")
const result = form.querySelector("[data-result]"), due = form.querySelector("[data-due]")
const relations = JSON.parse(form.dataset.relations), FIELDS = ["name", "query", "trigger", "stop", "deliver", "notify", "zone", "rest"]
const DAILY = "EVERY DAY AT '08:00'"
const KEPT = `harken-continual ${form.dataset.edited}`
const named = name => /^[A-Za-z_]\w*$/.test(name) || /^`.*`$/.test(name) ? name : `\`${name}\``

function compose() {
  const value = name => form.elements[name].value.trim()
  const lines = [`CREATE CONTINUAL QUERY${value("name") ? ` ${named(value("name"))}` : ""} AS`, value("query")]
  for (const name of ["trigger", "stop", "deliver"]) if (value(name)) lines.push(`${name.toUpperCase()} ${value(name)}`)
  for (const each of value("notify").split("\n")) if (each.trim()) lines.push(`NOTIFY ${each.trim()}`)
  if (value("zone")) lines.push(`ZONE ${quoted(value("zone"))}`)
  if (value("rest")) lines.push(value("rest"))
  return lines.join("\n")
}

// What is wrong is said beside its field, and nothing typed is lost.
function clear() {
  for (const each of form.querySelectorAll("[data-field]")) {
    each.querySelector("[role=status]").replaceChildren()
    each.querySelector("input, textarea").removeAttribute("aria-invalid")
  }
}
function wrong(found) {
  const known = form.querySelector(`[data-field="${found.field || "statement"}"]`) ?? form.querySelector("[data-field=statement]")
  const made = document.createElement("p")
  made.className = "problem"
  made.textContent = found.hint ? `${found.message}. ${found.hint}` : found.message
  known.querySelector("[role=status]").replaceChildren(made)
  known.querySelector("input, textarea").setAttribute("aria-invalid", "true")
  known.closest("details")?.setAttribute("open", "")
}

// The next times, in the reader's own zone.
const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone
function showDue(times, zone) {
  const written = new Intl.DateTimeFormat("en-GB", {weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit"})
  const said = times?.map(each => written.format(new Date(each))).join(" · ")
  due.textContent = said ? `Next, in your zone ${HERE}${zone === HERE ? "" : ` (the trigger is in ${zone})`}: ${said}` : ""
}

let asked = 0, timer = null
async function read(fill) {
  const mine = ++asked
  sessionStorage.setItem(KEPT, statement.value)
  if (!form.elements.query.value.trim() && !form.elements.trigger.value.trim() && !fill) return clear()
  try {
    const answer = await post("/queries/-/read", {text: statement.value}), found = await answer.json()
    if (mine !== asked) return
    clear()
    if (fill && found.fields) for (const name of FIELDS) form.elements[name].value = found.fields[name]
    if (found.fields) {
      showKind()
      takeQuery(found.parts)
      takeGroups(found.groups)
    }
    showDue(found.due, found.zone)
    showMail()
    const started = form.elements.query.value.trim() || fill
    if (found.wrong && started) wrong(found.wrong)
    serviceIs("live", "live")
  } catch {
    if (mine === asked) serviceIs("down", "not reached")
  }
}
function soon(fill) {
  clearTimeout(timer)
  timer = setTimeout(() => read(fill), 350)
}
function edited() {
  statement.value = compose()
  soon(false)
}
form.addEventListener("input", event => {
  if (event.target === statement) soon(true)
  else if (FIELDS.includes(event.target.name)) edited()
})

async function send(path, use) {
  const buttons = form.querySelectorAll("[data-try], [data-test], [type=submit]")
  for (const each of buttons) each.disabled = true
  clearTimeout(timer)
  asked++
  try {
    const answer = await post(path, {text: statement.value})
    clear()
    if (answer.ok) return await use(answer)
    wrong(await answer.json())
    result.replaceChildren()
    form.querySelector("[aria-invalid]")?.focus()
  } catch {
    serviceIs("down", "not reached")
    wrong({message: "The service does not answer", hint: "What you typed is still here.", field: "statement"})
  } finally {
    for (const each of buttons) each.disabled = false
  }
}
for (const [name, path] of [["try", "/queries/-/try"], ["test", "/queries/-/test"]]) {
  form.querySelector(`[data-${name}]`).addEventListener("click", () => {
    if (address.value.trim()) addRecipient()
    send(path, async answer => { result.innerHTML = await answer.text() })
  })
}
result.addEventListener("click", async event => {
  const asked = event.target.closest("[data-keep]")
  if (!asked || event.target.type !== "submit") return
  event.preventDefault()
  const answer = await post(asked.dataset.keep, {}), found = await answer.json()
  asked.replaceChildren(answer.ok ? found.told : found.message)
})
form.addEventListener("submit", event => {
  event.preventDefault()
  if (address.value.trim()) addRecipient()
  send(form.dataset.send, async answer => {
    sessionStorage.removeItem(KEPT)
    location.assign((await answer.json()).next)
  })
})

// What was typed before the page was left is here again; first once the pickers are there.
addEventListener("DOMContentLoaded", () => {
  const given = statement.value
  statement.value = given || sessionStorage.getItem(KEPT) || ""
  takeQuery(null)
  showMail()
  if (statement.value) return read(true)
  if (form.dataset.zone !== HERE) form.elements.zone.value = HERE
  setField("trigger", DAILY)
  showKind()
})
