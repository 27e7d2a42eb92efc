import { BASE } from './base.ts'

const EVERY_MS = 30_000

/**
 * The strip goes on while somebody sees it. A time that is chosen in a chart counts for the whole page, as one that is
 * chosen in the strip does: the strip shows it, and the links of the top bar lead to it.
 */
export function startTimeStrip () {
  document.addEventListener('clusterdeck:address', () => {
    const strip = document.getElementById('time-strip')
    if (!strip) return
    const params = new URLSearchParams(location.search)
    carryTime(params)
    params.set('path', location.pathname.slice(BASE.length))
    window.htmx.ajax('GET', `${BASE}/time-strip?${params}`, { target: strip, swap: 'outerHTML' })
  })
  setInterval(() => {
    if (!document.hidden) document.getElementById('time-strip')?.dispatchEvent(new Event('refresh'))
  }, EVERY_MS)
}

function carryTime (params: URLSearchParams) {
  for (const link of document.querySelectorAll<HTMLAnchorElement>('.nav a[data-of-time]')) {
    const url = new URL(link.href)
    for (const name of ['since', 'until']) {
      const value = params.get(name)
      if (value === null) url.searchParams.delete(name)
      else url.searchParams.set(name, value)
    }
    link.href = url.href
  }
}
