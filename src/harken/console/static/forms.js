// Forms that are sent as JSON. What was wrong is said beside the form, and nothing typed is lost.
"use strict"
for (const form of document.querySelectorAll("form[data-send]")) form.addEventListener("submit", async event => {
  event.preventDefault()
  const button = form.querySelector("button[type=submit]"), told = form.querySelector("[data-told]")
  const data = {}
  for (const each of form.elements) {
    if (!each.name) continue
    if ("number" in each.dataset) { if (each.value !== "") data[each.name] = Number(each.value) }
    else if ("flag" in each.dataset) data[each.name] = each.value === "yes"
    else if (each.type === "checkbox") data[each.name] = each.checked
    else data[each.name] = each.value
  }
  if (form.dataset.next) data.next = form.dataset.next
  button.disabled = true
  try {
    const answer = await fetch(form.dataset.send, {
      method: "POST", body: JSON.stringify(data),
      headers: {"content-type": "application/json", "x-csrf": document.querySelector("meta[name=csrf]").content},
    })
    const found = await answer.json()
    if (!answer.ok) return tell(told, `${found.message}${found.hint ? ` (${found.hint})` : ""}`, true)
    if (found.token) tell(told, `${found.told} ${found.token}`)
    else if (found.told && !found.next) tell(told, found.told)
    else if (found.next) location.assign(found.next)
    else location.reload()
  } catch {
    tell(told, "The service does not answer. What you typed is still here.", true)
  } finally {
    button.disabled = false
  }
})
function tell(place, text, isProblem = false) {
  if (!place) return alert(text)
  const made = document.createElement("p")
  made.textContent = text
  place.className = isProblem ? "problem" : ""
  place.replaceChildren(made)
}
