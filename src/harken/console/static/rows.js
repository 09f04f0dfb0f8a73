// Rows changed by hand: a dialog with a field for each column. What follows is seen in the table behind it.
"use strict"
const rowDialog = document.querySelector("[data-row-dialog]"), rowForm = rowDialog.querySelector("form")
const rowFields = [...rowForm.querySelectorAll("[data-column]")]
const nullOf = field => field.parentElement.querySelector("[data-null]")
let oldRow = {}
function openRow(row) {
  oldRow = row
  const isNew = !Object.keys(row).length
  rowForm.querySelector("h2").textContent = isNew ? "New row" : "Change the row"
  rowForm.querySelector("[data-delete]").hidden = isNew
  rowForm.querySelector("[data-told]").replaceChildren()
  for (const each of rowFields) {
    const value = row[each.dataset.column], mark = nullOf(each)
    each.value = value ?? ""
    if (mark) mark.checked = !isNew && value === null
  }
  rowDialog.showModal()
}
function values() {
  const found = {}
  for (const each of rowFields) {
    const name = each.dataset.column, isNull = nullOf(each)?.checked
    const value = isNull ? null : each.value, old = oldRow[name] ?? null
    if (Object.keys(oldRow).length ? value !== (old === null ? null : String(old)) : isNull || value !== "") found[name] = value
  }
  return found
}
async function sendRow(data) {
  const told = rowForm.querySelector("[data-told]"), made = document.createElement("p")
  made.className = "problem"
  try {
    const answer = await post(rowDialog.dataset.rows, data), found = await answer.json()
    if (answer.ok) return rowDialog.close()
    made.textContent = found.hint ? `${found.message}. ${found.hint}` : found.message
  } catch {
    made.textContent = "The service does not answer. What you typed is still here."
  }
  told.replaceChildren(made)
}
for (const each of rowFields) each.addEventListener("input", () => { if (nullOf(each)) nullOf(each).checked = false })
rowForm.addEventListener("submit", event => {
  event.preventDefault()
  const changed = values()
  if (!Object.keys(changed).length) return rowDialog.close()
  sendRow({old: oldRow, new: changed})
})
rowForm.querySelector("[data-delete]").addEventListener("click", () => sendRow({old: oldRow, new: {}}))
rowForm.querySelector("[data-close]").addEventListener("click", () => rowDialog.close())
document.querySelector("[data-add-row]").addEventListener("click", () => openRow({}))
document.querySelector("[data-editable]").addEventListener("edit-row", event => openRow(event.detail))
