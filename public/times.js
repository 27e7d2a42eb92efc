import { preference, setPreference } from './preferences.js'

/** Whether clocks show the viewer's own time, or UTC, as logs and colleagues elsewhere do. */

const LABELS = Object.freeze({ local: 'Local times', utc: 'UTC times' })

/** @returns {string | undefined} as Intl has it; undefined: the viewer's */
export function timeZone () {
  return choice() === 'utc' ? 'UTC' : undefined
}

export function startTimes () {
  label()
  document.addEventListener('click', ({ target }) => {
    if (!(target instanceof Element) || !target.closest('[data-times-toggle]')) return
    setPreference('times', choice() === 'utc' ? 'local' : 'utc')
  })
  document.addEventListener('clusterdeck:preference', label)
}

/** @returns {'utc' | 'local'} */
function choice () {
  return preference('times') === 'utc' ? 'utc' : 'local'
}

function label () {
  for (const toggle of document.querySelectorAll('[data-times-toggle]')) {
    toggle.textContent = choice() === 'utc' ? 'UTC' : 'Local'
    toggle.setAttribute('aria-label', LABELS[choice()])
    toggle.setAttribute('title', LABELS[choice()])
  }
}
