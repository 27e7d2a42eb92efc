import { setText } from './elements.ts'
import type { SentFragment } from './live-events.d.ts'

/** Steps around the morphing of a part of the page: its rows, its figures and the focus. */

/** @returns with the rows that the server left out, as this page has them; null: a row is missing here */
export function completeParts (parts: SentFragment['parts']): string | null {
  const texts = parts.map((part) => typeof part === 'string' ? part : document.getElementById(part.row)?.outerHTML)
  return texts.includes(undefined) ? null : texts.join('')
}

/** `figures`: by key: a text, the width of a bar, the points of a line, or a shade */
export function showFigures (figures: Record<string, string>) {
  for (const element of document.querySelectorAll('[data-figure]')) {
    const figure = figures[element.getAttribute('data-figure') ?? '']
    if (figure === undefined) continue
    const attribute = ['fill-opacity', 'width', 'points'].find((name) => element.hasAttribute(name))
    if (attribute) element.setAttribute(attribute, figure)
    else setText(element, figure)
  }
}

/**
 * Moves the focus to the button that replaces the focused one, so that it does not go to the top of the page. `target`:
 * what is about to change.
 * @returns for afterwards
 */
export function keepFocus (target: Element): () => void {
  const focused = document.activeElement
  if (!focused || !target.contains(focused)) return () => {}
  // The `id` of a form may be its field of that name.
  const group = focused.closest('[data-keeps-focus]')?.getAttribute('id')
  return () => {
    if (document.activeElement !== document.body && document.activeElement !== null) return
    const next = document.getElementById(focused.id) ?? (group ? document.querySelector(`#${group} button`) : null) ??
      document.getElementById('main')
    if (next instanceof HTMLElement) next.focus({ preventScroll: true })
  }
}

/** One that comes while another runs is on top of that. */
const GLIDE = Object.freeze({ duration: 100, easing: 'ease-out', composite: 'add' })

/**
 * Lets what a change moves up or down glide there, so that nothing jumps away from whoever reads it. Where the page is
 * scrolled, the browser itself keeps what is read in its place.
 * @returns for afterwards
 */
export function glideFromHere (): () => void {
  if (scrollY > 0) return () => {}
  // NaN: it is not to be seen.
  const topOf = (element: Element) => element.getClientRects()[0]?.top ?? Number.NaN
  const before = new Map(
    Array.from(document.querySelectorAll('main, main :not(svg *, tr *, li *)'), (each) => [each, topOf(each)])
  )
  return () => {
    const moves = new Map(Array.from(before, ([element, top]) => [element, top - topOf(element)]))
    for (const [element, move] of moves) {
      const own = move - (moves.get(element.parentElement ?? element) ?? 0)
      if (Math.abs(own) >= 1 && element.isConnected)
        element.animate([{ transform: `translateY(${own}px)` }, { transform: 'none' }], GLIDE)
    }
  }
}
