'use strict' // Until the scripts of a page have come, what needs them does nothing. The page says so after a while, and at once to
 // anyone who tries. A classic script in the head, as it must not be late itself.
;(() => {
  const PATIENCE_MS = 2000
  const NEEDS =
    '[data-dialog], [data-palette], [data-times-toggle], [data-copy], [data-scripted], #decks-open, [hx-post]:not([action]), [hx-confirm]'
  const page = document.documentElement

  setTimeout(sayWaiting, PATIENCE_MS)
  document.addEventListener('click', refuse, true)
  document.addEventListener('submit', refuse, true)

  function refuse (event: Event) {
    if (!isWaiting() || !(event.target instanceof Element) || !event.target.closest(NEEDS)) return
    event.preventDefault()
    sayWaiting()
  }

  function sayWaiting () {
    if (isWaiting()) page.dataset.live = 'waiting'
  }

  /** live.ts says that it has come. */
  function isWaiting () {
    return page.dataset.scripts !== 'on'
  }
})()
