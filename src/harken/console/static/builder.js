// The pickers of the form of a continual query: they write into its fields, and show what the fields say.
"use strict"
function setField(name, value) {
  form.elements[name].value = value
  edited()
}
const part = (row, name) => row.querySelector(`[data-part=${name}]`)
const quoted = value => `'${value.replaceAll("'", "''")}'`

// The kind of trigger, its template, and the five fields of a time.
const template = form.querySelector("[data-template]"), five = [...form.querySelectorAll("input[data-cron]")]
function show(kind) {
  for (const each of form.querySelectorAll("[data-kind]")) each.hidden = each.dataset.kind !== kind
}
function showKind() {
  const trigger = form.elements.trigger.value.trim(), start = trigger.toUpperCase()
  const kind = start === "ON REQUEST" ? "request" : /^(WHEN|WHILE|FROM|ON|AFTER)\b/.test(start) ? "content" : "time"
  const known = [...template.options].find(each => each.value === trigger), cron = /^CRON\s+'([^']*)'$/i.exec(trigger)?.[1]
  form.elements.kind.value = kind
  template.value = known ? trigger : ""
  const parts = (cron ?? known?.dataset.cron ?? "").split(/\s+/)
  five.forEach((each, index) => { if (each !== document.activeElement) each.value = parts[index] ?? "" })
  show(kind)
}
for (const each of form.elements.kind) each.addEventListener("change", () => {
  if (each.value === "request") setField("trigger", "ON REQUEST")
  if (each.value === "time") setField("trigger", template.value || DAILY)
  if (each.value === "content") {
    groups.length = 0
    addGroup("")
    writeGroups()
  }
  showKind()
})
template.addEventListener("change", () => {
  if (template.value) setField("trigger", template.value)
  showKind()
})
for (const each of five) each.addEventListener("input", () => setField("trigger", `CRON '${five.map(one => one.value.trim() || "*").join(" ")}'`))

// The events of a content trigger: each group is a row of fields.
const PARTS = ["join", "function", "operator", "value", "where", "by"]
const groups = [], place = form.querySelector("[data-groups]"), blank = form.querySelector("[data-kind=content] template")
const isLiteral = value => /^-?\d+(\.\d+)?$|^'.*'$|^[A-Za-z_]\w*\.\w+$|^\w+\(.*\)$/.test(value)
function choose(list, value) {
  if (![...list.options].some(each => each.value === value)) list.append(new Option(value))
  list.value = value
}
function fillAttributes(row, chosen) {
  const found = relations.find(each => each.name === part(row, "table").value), list = part(row, "attribute")
  list.replaceChildren(...(found?.columns ?? []).map(name => new Option(name)))
  if (chosen) choose(list, chosen)
}
function showGroups() {
  place.replaceChildren(...groups.map((group, index) => {
    const row = blank.content.firstElementChild.cloneNode(true), at = group.column.lastIndexOf(".")
    part(row, "join").hidden = index === 0
    if (at > 0) choose(part(row, "table"), group.column.slice(0, at))
    fillAttributes(row, group.column.slice(at + 1))
    for (const name of PARTS) if (group[name]) part(row, name).value = group[name]
    const read = () => {
      group.column = `${part(row, "table").value}.${part(row, "attribute").value}`
      for (const name of PARTS) group[name] = part(row, name).value.trim()
      part(row, "value").hidden = group.operator === "CHANGES"
      writeGroups()
    }
    part(row, "value").hidden = group.operator === "CHANGES"
    part(row, "table").addEventListener("change", () => fillAttributes(row))
    row.addEventListener("input", event => { event.stopPropagation(); read() })
    row.addEventListener("change", read)
    row.querySelector("[data-remove]").addEventListener("click", () => {
      groups.splice(index, 1)
      showGroups()
      writeGroups()
    })
    return row
  }))
}
function eventText(group, isOne) {
  const subject = group.function ? `${group.function}(${group.column})` : group.column, value = group.value || "0"
  const test = group.operator === "CHANGES" ? `${subject} CHANGES` : `${subject} ${group.operator} ${isLiteral(value) ? value : quoted(value)}`
  const all = [test, group.where && `WHERE ${group.where}`, group.by && `GROUP BY ${group.by}`].filter(Boolean).join(" ")
  return !isOne && (group.where || group.by || group.apart) ? `(${all})` : all
}
function writeGroups() {
  const texts = groups.map((group, index) => (index ? `${group.join || "AND"} ` : "") + eventText(group, groups.length === 1))
  form.querySelector("[data-free]").hidden = true
  setField("trigger", groups.length ? `WHEN ${texts.join(" ")}` : "")
}
function addGroup(join) {
  const used = usedRelations(), from = relations.find(each => used.includes(each.name)) ?? relations[0]
  const column = groups.at(-1)?.column ?? (from ? `${from.name}.${from.columns.at(-1)}` : "")
  groups.push({join, function: "", column, operator: "CHANGES", value: "", where: "", by: "", apart: ""})
  showGroups()
}
for (const each of form.querySelectorAll("[data-join]")) each.addEventListener("click", () => {
  addGroup(each.dataset.join)
  writeGroups()
})
form.querySelector("[data-clear]").addEventListener("click", () => {
  groups.length = 0
  showGroups()
  setField("trigger", "")
})
function takeGroups(found) {
  const isContent = form.elements.kind.value === "content"
  form.querySelector("[data-free]").hidden = !isContent || Boolean(found) || !form.elements.trigger.value.trim()
  if (!found || place.contains(document.activeElement)) return
  groups.splice(0, groups.length, ...found)
  showGroups()
}

// The query in parts: columns, tables, conditions.
const build = form.querySelector("[data-build]"), queryParts = [...form.querySelectorAll("[data-query]")]
let from = ""
function usedRelations() {
  const words = from.match(/`[^`]*`|[\w$]+/g) ?? []
  return relations.map(each => each.name).filter(name => words.includes(name))
}
function writeQuery() {
  const value = name => form.querySelector(`[data-query=${name}]`).value.trim()
  const lines = [`SELECT ${value("select") || "*"} FROM ${from}`]
  for (const [name, words] of [["where", "WHERE"], ["group", "GROUP BY"], ["order", "ORDER BY"]]) if (value(name)) lines.push(`${words} ${value(name)}`)
  setField("query", from ? lines.join("\n") : "")
  showQuery()
}
function showQuery() {
  const used = usedRelations(), chosen = form.querySelector("[data-query=select]")
  const now = chosen.value.split(",").map(one => one.trim()).filter(Boolean)
  form.querySelector("[data-from]").textContent = from ? `from ${from}` : "and click its columns"
  form.querySelector("[data-columns]").replaceChildren(...relations.filter(each => used.includes(each.name)).flatMap(each => each.columns.map(name => {
    const full = used.length > 1 ? `${each.name}.${name}` : name, chip = document.createElement("button")
    chip.type = "button"
    chip.textContent = full
    chip.ariaPressed = String(now.includes(full))
    chip.addEventListener("click", () => {
      const listed = now.includes(full) ? now.filter(one => one !== full) : [...now.filter(one => one !== "*"), full]
      chosen.value = listed.join(", ") || "*"
      writeQuery()
    })
    return chip
  })))
}
function takeQuery(parts) {
  const isEmpty = !form.elements.query.value.trim()
  build.hidden = !parts && !isEmpty
  form.querySelector("[data-rich]").hidden = Boolean(parts) || isEmpty
  if (build.contains(document.activeElement) && document.activeElement.matches("input")) return
  from = parts?.from ?? ""
  for (const each of queryParts) each.value = parts?.[each.dataset.query] ?? ""
  showQuery()
}
for (const each of queryParts) each.addEventListener("input", event => { event.stopPropagation(); writeQuery() })
form.querySelector("[data-relation]").addEventListener("change", ({target}) => {
  const found = relations.find(each => each.name === target.value), used = usedRelations()
  target.value = ""
  if (!found || used.includes(found.name)) return
  const first = relations.find(each => each.name === used[0]), shared = first?.columns.filter(name => found.columns.includes(name)) ?? []
  from = !from ? found.name : shared.length ? `${from} JOIN ${found.name} USING (${shared[0]})` : `${from}, ${found.name}`
  writeQuery()
})

// Who is told.
const channel = form.querySelector("[data-channel]"), address = form.querySelector("[data-address]"), noMail = form.querySelector("[data-no-mail]")
function addRecipient() {
  const word = channel.value.toUpperCase(), made = address.value.trim() ? `${word} ${quoted(address.value.trim())}` : word
  address.value = ""
  setField("notify", [form.elements.notify.value.trim(), made].filter(Boolean).join("\n"))
}
function showMail() {
  if (noMail) noMail.hidden = !/^\s*EMAIL\b/im.test(form.elements.notify.value) && channel.value !== "email"
}
channel.addEventListener("change", showMail)
form.querySelector("[data-add]").addEventListener("click", addRecipient)
address.addEventListener("input", event => event.stopPropagation())
address.addEventListener("keydown", event => {
  if (event.key !== "Enter") return
  event.preventDefault()
  addRecipient()
})
