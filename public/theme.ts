'use strict' // Runs before the first paint, hence a classic script in the head: no flash of the other theme.
;(() => {
  const KEY = 'clusterdeck-theme'
  const LABELS: Record<string, string> = { system: 'Theme: as the system', light: 'Theme: light', dark: 'Theme: dark' }
  const CHOICES = Object.keys(LABELS)

  let choice = CHOICES.find((each) => each === readTheme()) ?? 'system'
  applyTheme()
  document.addEventListener('DOMContentLoaded', labelButton)
  document.addEventListener('click', ({ target }) => {
    if (!(target instanceof Element) || !target.closest('[data-theme-toggle]')) return
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length]
    applyTheme()
    labelButton()
    writeTheme()
  })

  function applyTheme () {
    document.documentElement.dataset.theme = choice
  }

  function labelButton () {
    for (const toggle of document.querySelectorAll('[data-theme-toggle]'))
      toggle.setAttribute('aria-label', LABELS[choice])
  }

  // Storage may be forbidden; the theme then lasts as long as the page.
  function readTheme () {
    try {
      return localStorage.getItem(KEY)
    } catch {
      return null
    }
  }

  function writeTheme () {
    try {
      localStorage.setItem(KEY, choice)
    } catch {}
  }
})()
