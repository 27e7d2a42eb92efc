import { preference, setPreference } from './preferences.js'

/** Switches clocks between the viewer's own time and UTC, which logs and colleagues elsewhere use. */

const LABELS = Object.freeze({ local: 'Local times', utc: 'UTC times' })

/** @returns {string | undefined} as Intl has it; undefined: the viewer's */
export function timeZone () {
  return chosenZone() === 'utc' ? 'UTC' : undefined
}

export function startTimes () {
  labelButton()
  document.addEventListener('click', ({ target }) => {
    if (!(target instanceof Element) || !target.closest('[data-times-toggle]')) return
    setPreference('times', chosenZone() === 'utc' ? 'local' : 'utc')
  })
  document.addEventListener('clusterdeck:preference', labelButton)
}

/** @returns {'utc' | 'local'} */
function chosenZone () {
  return preference('times') === 'utc' ? 'utc' : 'local'
}

function labelButton () {
  for (const toggle of document.querySelectorAll('[data-times-toggle]')) {
    toggle.textContent = chosenZone() === 'utc' ? 'UTC' : 'Local'
    toggle.setAttribute('aria-label', LABELS[chosenZone()])
  }
}
