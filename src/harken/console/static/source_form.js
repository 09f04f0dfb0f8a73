// The form that adds a source: check reads it once and installs nothing. What was wrong is said beside its field.
"use strict"
const form = document.querySelector("[data-source]"), result = form.querySelector("[data-result]")
form.elements.kind.addEventListener("change", () => location.assign(`/new/source?kind=${encodeURIComponent(form.elements.kind.value)}`))
const KEPT = `harken-source ${form.elements.kind.value}`
const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "{}")
const typed = [...form.elements].filter(each => each.name && each.name !== "kind")
for (const each of typed) if (kept[each.name]) each.value = kept[each.name]
form.addEventListener("input", () => sessionStorage.setItem(KEPT, JSON.stringify(Object.fromEntries(typed.filter(each => each.type !== "password").map(each => [each.name, each.value])))))
function given() {
  const value = name => form.elements[name]?.value.trim() ?? ""
  const options = {}
  for (const each of form.querySelectorAll("[data-option]")) if (each.value.trim()) options[each.dataset.option] = each.value
  const found = {name: value("name"), kind: value("kind"), options, key: value("key"), capture: value("capture")}
  if (value("every")) found.every = Number(value("every"))
  return found
}
function wrong({message, hint, field, offer}) {
  const option = field ? form.querySelector(`[data-option="${CSS.escape(field)}"]`) : null
  const made = document.createElement("p")
  made.className = "problem"
  made.textContent = hint ? `${message}. ${hint}` : message
  const place = option ? option.closest(".field").querySelector("[role=status]") : result
  place.replaceChildren(made)
  if (offer === "addresses") {
    const button = document.createElement("button"), note = document.createElement("p")
    note.textContent = "Sources may not reach this machine or its network now. If it is yours, you can allow that for this database."
    button.type = "button"
    button.textContent = "Allow it, and check again"
    button.addEventListener("click", async () => {
      const answer = await post("/operator/addresses", {allowed: true})
      if (answer.ok) form.querySelector("[data-check]").click()
      else wrong(await answer.json())
    })
    made.append(note, button)
  }
  option?.closest("details")?.setAttribute("open", "")
  option?.focus()
}
async function send(path, data, use) {
  const buttons = form.querySelectorAll("button")
  for (const each of buttons) each.disabled = true
  for (const each of form.querySelectorAll("[role=status]")) each.replaceChildren()
  result.textContent = "Reading the source."
  try {
    const answer = await post(path, data)
    result.replaceChildren()
    if (answer.ok) await use(answer)
    else wrong(await answer.json())
  } catch {
    wrong({message: "The service does not answer", hint: "What you typed is still here."})
  } finally {
    for (const each of buttons) each.disabled = false
  }
}
result.addEventListener("click", ({target}) => {
  if (!target.dataset.key) return
  form.elements.key.value = target.dataset.key
  form.dispatchEvent(new Event("input"))
})
form.elements["o-table"]?.addEventListener("change", ({target}) => {
  if (!form.elements.name.value) form.elements.name.value = target.value.split(".").at(-1).replace(/\W/g, "_")
})
form.querySelector("[data-check]").addEventListener("click", () => {
  const {kind, options, capture} = given()
  send("/sources/-/check", {kind, options, capture}, async answer => { result.innerHTML = await answer.text() })
})
form.addEventListener("submit", event => {
  event.preventDefault()
  send("/sources", given(), async answer => {
    sessionStorage.removeItem(KEPT)
    location.assign((await answer.json()).next)
  })
})
