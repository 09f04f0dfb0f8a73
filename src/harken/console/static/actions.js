// The buttons of a page: each sends what it does and shows the page again. Dropping waits ten seconds, for undo.
"use strict"
const place = document.querySelector("[data-actions]"), base = place.dataset.actions
async function act(path, data = {}) {
  try {
    const answer = await post(path, data), found = await answer.json()
    if (!answer.ok) return toast(found.hint ? `${found.message} (${found.hint})` : found.message)
    if (found.told) toast(found.told)
    else if (found.next && !location.pathname.startsWith(found.next)) location.assign(found.next)
    else location.reload()
  } catch {
    toast("The service does not answer. Nothing was changed.")
  }
}
let dropping = null
function drop() {
  const main = document.querySelector("main"), name = place.dataset.name
  const send = () => {
    dropping = null
    return fetch(`${base}/${place.querySelector("[data-path]")?.dataset.path ?? "do/drop"}`, {
      method: "POST", body: "{}", keepalive: true, headers: {"content-type": "application/json", "x-csrf": csrf},
    })
  }
  main.classList.add("going")
  const timer = setTimeout(async () => {
    const answer = await send(), found = await answer.json()
    main.classList.remove("going")
    if (answer.ok) location.assign(found.next)
    else toast(found.hint ? `${found.message} (${found.hint})` : found.message)
  }, 10000)
  dropping = {send, timer}
  toast(`${name} will be gone in ten seconds.`, () => {
    clearTimeout(timer)
    dropping = null
    main.classList.remove("going")
  })
}
addEventListener("pagehide", () => dropping?.send())
for (const each of place.querySelectorAll("[data-do]")) each.addEventListener("click", () => {
  if (each.dataset.do === "drop") return dropping ?? drop()
  each.disabled = true
  act(`${base}/do/${each.dataset.do}`, {}).finally(() => { each.disabled = false })
})
const snooze = place.querySelector("[data-snooze]")
snooze?.addEventListener("change", () => { if (snooze.value) act(`${base}/snooze`, {hours: Number(snooze.value)}) })
for (const each of document.querySelectorAll("[data-number]")) each.addEventListener("click", () =>
  act(each.closest("[data-resend]").dataset.resend, {number: Number(each.dataset.number)}))
