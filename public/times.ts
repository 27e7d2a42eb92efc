import { preference, setPreference } from './preferences.ts'

/** Switches clocks between the viewer's own time and UTC, which logs and colleagues elsewhere use. */

const LABELS = Object.freeze({ local: 'Local time', utc: 'UTC' })
const HINTS = Object.freeze({ local: 'Local time: switch to UTC', utc: 'UTC: switch to local time' })

/** @returns as Intl has it; undefined: the viewer's */
export function timeZone (): string | undefined {
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

function chosenZone (): 'utc' | 'local' {
  return preference('times') === 'utc' ? 'utc' : 'local'
}

function labelButton () {
  for (const toggle of document.querySelectorAll('[data-times-toggle]')) {
    toggle.textContent = LABELS[chosenZone()]
    toggle.setAttribute('aria-label', HINTS[chosenZone()])
  }
}
