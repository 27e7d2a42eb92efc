/**
 * Loads the script of a part of the page once somebody has scrolled to it.
 *
 * <section data-script="/assets/charts.js?v=…">
 */

/** The master may be away. */
const AGAIN_MS = 3000

export function startLateScripts () {
  const parts: NodeListOf<HTMLElement> = document.querySelectorAll('[data-script]')
  for (const part of parts) seen.observe(part)
}

const seen = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries)
    if (isIntersecting && target instanceof HTMLElement) loadScript(target)
})

async function loadScript (part: HTMLElement) {
  seen.unobserve(part)
  try {
    await import(String(part.dataset.script))
  } catch {
    setTimeout(() => seen.observe(part), AGAIN_MS)
  }
}
