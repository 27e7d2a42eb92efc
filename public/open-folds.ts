/**
 * Keeps the folds of a list open that somebody has opened: over pages, and back again, for as long as the tab is open.
 */

const KEY = 'clusterdeck-open-folds'
const MAX_KEPT = 100

/** Call it after each change of the list. */
export function openFolds () {
  for (const id of readOpen()) document.getElementById(id)?.setAttribute('open', '')
}

// The event does not bubble, so it is captured.
document.addEventListener('toggle', ({ target }) => {
  if (!(target instanceof HTMLDetailsElement && target.closest('.fold'))) return
  const others = readOpen().filter((id) => id !== target.id)
  writeOpen(target.open ? [...others, target.id].slice(-MAX_KEPT) : others)
}, true)

function readOpen (): string[] {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEY) ?? '[]')
    return Array.isArray(kept) ? kept.map(String) : []
  } catch {
    // Storage is switched off, or somebody has changed it.
    return []
  }
}

function writeOpen (ids: string[]) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(ids))
  } catch {
    // Storage is switched off: what is open stays open on this page alone.
  }
}
