// A table that follows a view: the rows now, and for four seconds what has just changed.
// Only the rows that can be seen are in the page, so that many thousands scroll well.
"use strict"
const MARKED = 4000, ROW = 31, AROUND = 20, SLOW = 300, POLL = 2000

class LiveTable {
  constructor(place) {
    this.place = place
    this.body = place.querySelector("tbody")
    this.headers = [...place.querySelectorAll("th:not([data-edit])")].slice(1)
    this.isEditable = "editable" in place.dataset
    this.numbers = this.headers.map(each => each.classList.contains("n"))
    this.key = JSON.parse(place.dataset.key)
    this.keyAt = this.key.map(name => this.headers.findIndex(each => each.textContent.trim() === name))
    this.rows = new Map()      // a row as text -> {row, count}
    this.marks = new Map()     // identity -> {kind, old, row, until}
    this.shown = []
    this.sortBy = null
    this.headers.forEach((header, index) => header.querySelector("button").addEventListener("click", () => {
      this.sortBy = {index, sign: turnSort(header)}
      this.arrange()
    }))
    place.addEventListener("scroll", () => this.draw())
    this.waiting = setTimeout(() => this.skeleton(), SLOW)
    this.follow()
  }

  follow() {
    if (this.place.dataset.polled) return this.poll("")
    const asked = new URLSearchParams()
    if (this.place.dataset.where) asked.set("where", this.place.dataset.where)
    const source = new EventSource(`/api/v1/views/${encodeURIComponent(this.place.dataset.live)}/events?${asked}`)
    source.addEventListener("snapshot", event => this.begin(JSON.parse(event.data)))
    source.addEventListener("change", event => this.change(JSON.parse(event.data)))
    source.addEventListener("failed", event => {
      source.close()
      this.fail(JSON.parse(event.data))
    })
    source.onopen = () => serviceIs("live", "live")
    source.onerror = () => {
      const since = new Date().toLocaleTimeString()
      if (source.readyState === EventSource.CLOSED) this.fail({message: "The view is not there any more, or you may not read it."})
      else serviceIs("lost", `reconnecting since ${since}; what was missed will be fetched`)
    }
    addEventListener("pagehide", () => source.close())
  }

  // What is no view has no stream: its rows are asked for again, and come only if they are others.
  async poll(known) {
    const began = Date.now()
    let next = known
    try {
      if (!document.hidden || !known) {
        const answer = await fetch(`${this.place.dataset.polled}?known=${known}`)
        if (answer.status === 200) {
          const found = await answer.json()
          next = found.state
          this.begin(found)
          setTimeout(() => this.forget(), MARKED + 50)
        } else if (!answer.ok) return this.fail(await answer.json())
        serviceIs("live", "live")
      }
    } catch {
      serviceIs("lost", "reconnecting; what was missed will be fetched")
    }
    setTimeout(() => this.poll(next), Math.max(POLL, 20 * (Date.now() - began)))
  }

  begin({rows, position}) {
    clearTimeout(this.waiting)
    const before = this.rows
    this.rows = new Map()
    for (const row of rows) this.count(row, 1)
    this.began = true
    if (before.size) this.compare(before)
    showPosition(position)
    this.arrange()
  }

  // After a long break all rows come again: mark what differs.
  compare(before) {
    const plus = [], minus = []
    for (const [text, {row}] of this.rows) if (!before.has(text)) plus.push(row)
    for (const [text, {row}] of before) if (!this.rows.has(text)) minus.push(row)
    this.mark(plus, minus)
  }

  change({plus, minus, position, fresh}) {
    if (fresh) return this.begin({rows: plus, position})
    for (const row of minus) this.count(row, -1)
    for (const row of plus) this.count(row, 1)
    this.mark(plus, minus)
    showPosition(position)
    this.arrange()
    setTimeout(() => this.forget(), MARKED + 50)
  }

  count(row, by) {
    const text = JSON.stringify(row), known = this.rows.get(text)
    const count = (known?.count ?? 0) + by
    if (count > 0) this.rows.set(text, {row, count})
    else this.rows.delete(text)
  }

  identity(row) {
    return JSON.stringify(this.keyAt.length ? this.keyAt.map(at => row[at]) : row)
  }

  mark(plus, minus) {
    const until = Date.now() + MARKED, gone = new Map(minus.map(row => [this.identity(row), row]))
    for (const row of plus) {
      const id = this.identity(row), old = gone.get(id)
      gone.delete(id)
      const same = old && JSON.stringify(old) === JSON.stringify(row)
      this.marks.set(id, {kind: old && !same ? "chg" : "add", old, until})
    }
    for (const [id, row] of gone) this.marks.set(id, {kind: "del", row, until})
  }

  forget() {
    const now = Date.now()
    for (const [id, mark] of this.marks) if (mark.until <= now) this.marks.delete(id)
    this.arrange()
  }

  arrange() {
    const all = []
    for (const {row, count} of this.rows.values()) {
      const mark = this.marks.get(this.identity(row))
      for (let n = 0; n < count; n++) all.push({row, mark: mark?.kind === "del" ? undefined : mark})
    }
    for (const mark of this.marks.values()) if (mark.kind === "del") all.push({row: mark.row, mark})
    if (this.sortBy) {
      const {index, sign} = this.sortBy
      all.sort(({row: a}, {row: b}) => a[index] === null || b[index] === null ? compare(a[index], b[index]) : sign * compare(a[index], b[index]))
    } else {
      all.sort((a, b) => (b.mark ? 1 : 0) - (a.mark ? 1 : 0))
    }
    this.shown = all
    const count = [...this.rows.values()].reduce((sum, each) => sum + each.count, 0)
    const changed = this.marks.size ? `, ${this.marks.size.toLocaleString("en")} changed at ${new Date().toLocaleTimeString()}` : ""
    document.querySelector("[data-live-count]").textContent = `${count.toLocaleString("en")} ${count === 1 ? "row" : "rows"}${changed}`
    document.querySelector("[data-live-empty]").hidden = !this.began || all.length > 0
    this.draw()
  }

  draw() {
    if (!this.began) return
    const first = Math.max(0, Math.floor(this.place.scrollTop / ROW) - AROUND)
    const last = Math.min(this.shown.length, Math.ceil((this.place.scrollTop + this.place.clientHeight) / ROW) + AROUND)
    const lines = [this.space(first * ROW)]
    for (const each of this.shown.slice(first, last)) lines.push(this.line(each))
    lines.push(this.space((this.shown.length - last) * ROW))
    this.body.replaceChildren(...lines.filter(Boolean))
  }

  space(height) {
    if (height <= 0) return null
    const row = document.createElement("tr"), cell = document.createElement("td")
    row.className = "space"
    row.ariaHidden = "true"
    cell.colSpan = this.headers.length + 1 + this.isEditable
    cell.style.height = `${height}px`
    row.append(cell)
    return row
  }

  line({row, mark}) {
    const line = document.createElement("tr"), sign = document.createElement("td")
    sign.className = "mark"
    sign.textContent = mark ? {add: "+", del: "−", chg: "~"}[mark.kind] : ""
    if (mark) line.className = mark.kind
    line.append(sign, ...row.map((value, index) => this.cell(value, index, mark)))
    if (this.isEditable) line.append(this.editCell(row, mark))
    return line
  }

  cell(value, index, mark) {
    const cell = document.createElement("td")
    if (this.numbers[index]) cell.className = "n"
    const was = mark?.kind === "chg" && JSON.stringify(mark.old[index]) !== JSON.stringify(value)
    const place = was || value === null ? cell.appendChild(document.createElement("span")) : cell
    if (was) {
      place.className = "was"
      place.title = `was ${mark.old[index] ?? "null"}`
    } else if (value === null) place.className = "null"
    if (typeof value === "string" && /^https?:\/\/\S+$/.test(value)) return linked(cell, place, value)
    const text = value === null ? "null" : typeof value === "object" ? JSON.stringify(value) : String(value)
    place.textContent = text.length > 200 ? `${text.slice(0, 200)}…` : text
    if (!was && text.length > 40) cell.title = text.slice(0, 2000)
    return cell
  }

  editCell(row, mark) {
    const cell = document.createElement("td"), button = document.createElement("button")
    button.type = "button"
    button.className = "link"
    button.textContent = "edit"
    button.ariaLabel = `Edit ${row[this.keyAt[0] ?? 0] ?? "the row"}`
    button.addEventListener("click", () => {
      const named = Object.fromEntries(this.headers.map((each, index) => [each.textContent.trim(), row[index]]))
      this.place.dispatchEvent(new CustomEvent("edit-row", {detail: named}))
    })
    if (mark?.kind !== "del") cell.append(button)
    return cell
  }

  skeleton() {
    const lines = Array.from({length: 5}, () => {
      const row = document.createElement("tr")
      row.className = "skeleton"
      row.append(...Array.from({length: this.headers.length + 1}, () => document.createElement("td")))
      return row
    })
    this.body.replaceChildren(...lines)
  }

  fail({message, hint}) {
    clearTimeout(this.waiting)
    serviceIs("down", "not live")
    const found = document.createElement("div"), text = document.createElement("p")
    found.className = "problem"
    found.role = "alert"
    text.textContent = hint ? `${message} ${hint}` : message
    found.append(text)
    this.place.before(found)
    if (!this.began) this.body.replaceChildren()
  }
}
for (const each of document.querySelectorAll("[data-live]")) new LiveTable(each)
