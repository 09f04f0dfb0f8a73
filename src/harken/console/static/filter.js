// The filter form of a source: it writes a continual query over it, and installs it or opens it in the full form.
"use strict"
const filter = document.querySelector("[data-filter]"), filterTold = filter.querySelector("[data-told]")
function condition(input) {
  const value = input.value.trim(), operator = input.parentElement.querySelector("select").value
  const isNumber = "number" in input.dataset && /^-?\d+(\.\d+)?$/.test(value)
  return value && `${input.dataset.column} ${operator} ${isNumber ? value : `'${value.replaceAll("'", "''")}'`}`
}
function statementOf() {
  const source = filter.dataset.sourceName, tests = [...filter.querySelectorAll("[data-column]")].map(condition).filter(Boolean)
  const where = tests.length ? ` WHERE ${tests.join(" AND ")}` : "", trigger = filter.elements.trigger.value, mail = filter.elements.mail.value.trim()
  const lines = [`CREATE CONTINUAL QUERY AS`, `SELECT * FROM ${source}${where}`, `TRIGGER ${trigger}${trigger.startsWith("FROM") ? where : ""}`]
  if (mail) lines.push(`NOTIFY EMAIL '${mail.replaceAll("'", "''")}'`)
  return lines.join("\n")
}
filter.addEventListener("submit", async event => {
  event.preventDefault()
  try {
    const answer = await post("/queries", {text: statementOf()}), found = await answer.json()
    if (answer.ok) return location.assign(found.next)
    filterTold.className = "bad"
    filterTold.textContent = found.hint ? `${found.message}. ${found.hint}` : found.message
  } catch {
    filterTold.textContent = "The service does not answer. What you typed is still here."
  }
})
filter.querySelector("[data-more]").addEventListener("click", () => {
  sessionStorage.setItem("harken-continual ", statementOf())
  location.assign("/new/query")
})
