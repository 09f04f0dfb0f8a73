// The form of a continual query and its text: two views of one statement, always in step.
"use strict"
const form = document.querySelector("[data-continual]"), statement = form.querySelector("[data-statement]")
const result = form.querySelector("[data-result]"), due = form.querySelector("[data-due]")
const relations = JSON.parse(form.dataset.relations), FIELDS = ["name", "query", "trigger", "stop", "deliver", "notify", "zone", "rest"]
const DAILY = "EVERY DAY AT '08:00'"
const KEPT = `harken-continual ${form.dataset.edited}`
const text = value => `'${value.replaceAll("'", "''")}'`
const named = name => /^[A-Za-z_]\w*$/.test(name) || /^`.*`$/.test(name) ? name : `\`${name}\``

function compose() {
  const value = name => form.elements[name].value.trim()
  const lines = [`CREATE CONTINUAL QUERY${value("name") ? ` ${named(value("name"))}` : ""} AS`, value("query")]
  for (const name of ["trigger", "stop", "deliver"]) if (value(name)) lines.push(`${name.toUpperCase()} ${value(name)}`)
  for (const each of value("notify").split("\n")) if (each.trim()) lines.push(`NOTIFY ${each.trim()}`)
  if (value("zone")) lines.push(`ZONE ${text(value("zone"))}`)
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

let asked = 0, timer = null
async function read(fill) {
  const mine = ++asked
  sessionStorage.setItem(KEPT, statement.value)
  if (!form.elements.query.value.trim() && !fill) return clear()
  try {
    const answer = await post("/queries/-/read", {text: statement.value}), found = await answer.json()
    if (mine !== asked) return
    clear()
    if (fill && found.fields) for (const name of FIELDS) form.elements[name].value = found.fields[name]
    if (fill && found.fields) showKind()
    due.textContent = found.due?.length ? `Next, in ${found.zone}: ${found.due.join(" · ")}` : ""
    const started = form.elements.query.value.trim() || !fill
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

// The pickers write into the fields.
function setField(name, value) {
  form.elements[name].value = value
  edited()
}
function show(kind) {
  for (const each of form.querySelectorAll("[data-kind]")) each.hidden = each.dataset.kind !== kind
}
function showKind() {
  const trigger = form.elements.trigger.value.trim().toUpperCase()
  const kind = trigger === "ON REQUEST" ? "request" : /^(WHEN|WHILE|FROM|ON|AFTER)\b/.test(trigger) ? "content" : "time"
  form.elements.kind.value = kind
  const template = form.querySelector("[data-template]")
  template.value = [...template.options].some(each => each.value === form.elements.trigger.value) ? form.elements.trigger.value : ""
  show(kind)
}
for (const each of form.elements.kind) each.addEventListener("change", () => {
  show(each.value)
  if (each.value === "request") setField("trigger", "ON REQUEST")
  if (each.value === "time") setField("trigger", form.querySelector("[data-template]").value || DAILY)
})
form.querySelector("[data-template]").addEventListener("change", event => event.target.value && setField("trigger", event.target.value))
const part = name => form.querySelector(`[data-part=${name}]`).value
function condition() {
  const value = part("value").trim() || "0"
  const number = /^-?\d+(\.\d+)?$/.test(value) || /^'.*'$/.test(value) || /^[A-Za-z_]\w*\.\w+$/.test(value)
  return `${part("column")} ${part("operator")} ${number ? value : text(value)}`
}
form.querySelector("[data-use]").addEventListener("click", () => setField("trigger", `WHEN ${condition()}`))
for (const each of form.querySelectorAll("[data-join]")) each.addEventListener("click", () => {
  const before = form.elements.trigger.value.trim()
  setField("trigger", /^WHEN\b/i.test(before) ? `${before} ${each.dataset.join} ${condition()}` : `WHEN ${condition()}`)
})
form.querySelector("[data-relation]").addEventListener("change", ({target}) => {
  const found = relations.find(each => each.name === target.value)
  if (found) setField("query", `SELECT ${found.columns.join(", ")} FROM ${found.name}`)
  target.value = ""
})
form.querySelector("[data-add]").addEventListener("click", () => {
  const address = form.querySelector("[data-address]"), channel = form.querySelector("[data-channel]").value.toUpperCase()
  const made = address.value.trim() ? `${channel} ${text(address.value.trim())}` : channel
  setField("notify", [form.elements.notify.value.trim(), made].filter(Boolean).join("\n"))
  address.value = ""
})

async function send(path, use) {
  const buttons = form.querySelectorAll("[data-try], [type=submit]")
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
form.querySelector("[data-try]").addEventListener("click", () => send("/queries/-/try", async answer => {
  result.innerHTML = await answer.text()
}))
form.addEventListener("submit", event => {
  event.preventDefault()
  send(form.dataset.send, async answer => {
    sessionStorage.removeItem(KEPT)
    location.assign((await answer.json()).next)
  })
})

// What was typed before the page was left is here again.
const given = statement.value
statement.value = given || sessionStorage.getItem(KEPT) || ""
if (statement.value) read(true)
else setField("trigger", DAILY)
