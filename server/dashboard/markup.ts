import { assetUrl } from './assets.ts'
import { escaped } from './html.ts'

/** Markup of many templates, see views.ts. */

/** `isHidden`: its head is only for screen readers; `url`: sorts by it */
type Column = string | readonly [label: string, className: string] | { label: string, className?: string,
  isHidden?: boolean, url?: string, ariaSort?: string | null }
type Choice = string | readonly [value: string, label: string]

/** `name`: of a symbol in icons.svg */
export function icon (name: string, className: string = '') {
  return `<svg class="icon ${escaped(className)}" aria-hidden="true" focusable="false"><use href="${
    assetUrl('icons.svg')
  }#${escaped(name)}"/></svg>`
}

export function heads (...columns: readonly Column[]) {
  return `<thead role="rowgroup"><tr role="row">${columns.map(headOf).join('')}</tr></thead>`
}

function headOf (column: Column): string {
  if (typeof column === 'string') return headOf({ label: column })
  if (isPair(column)) return headOf({ label: column[0], className: column[1] })
  const { label, className, isHidden, url, ariaSort } = column
  const text = isHidden ? `<span class="sr-only">${escaped(label)}</span>` : escaped(label)
  return `<th role="columnheader" scope="col"${className ? ` class="${escaped(className)}"` : ''}${
    ariaSort ? ` aria-sort="${escaped(ariaSort)}"` : ''
  }>${url ? `<a class="sort" href="${escaped(url)}">${text}</a>` : text}</th>`
}

/** What a `select` offers. `chosen`: what is chosen, also where nobody offers it any more */
export function optionsOf (choices: readonly Choice[], chosen: string | null | undefined) {
  const pairs = choices.map((choice) => isPair(choice) ? choice : [choice, choice])
  const known = !chosen || pairs.some(([value]) => value === chosen) ? pairs : [...pairs, [chosen, chosen]]
  return known.map(([value, label]) =>
    `<option value="${escaped(value)}"${value === (chosen ?? '') ? ' selected' : ''}>${escaped(label)}</option>`
  ).join('')
}

/** A field with a label, of which one of `choices` can be chosen. */
export function select (label: string, { name, id }: { name: string, id: string }, choices: readonly Choice[],
  chosen: string | null | undefined)
{
  return `<label class="select"><span>${escaped(label)}</span><select name="${escaped(name)}" id="${escaped(id)}">${
    optionsOf(choices, chosen)
  }</select></label>`
}

/** `label`: what the field says as long as it is empty */
export function searchField (id: string, label: string, value: string | null | undefined, maxChars: number = 100) {
  return `<label class="search"><span class="sr-only">${escaped(label)}</span>${
    icon('search')
  }<input type="search" name="q" id="${escaped(id)}" value="${
    escaped(value ?? '')
  }" maxlength="${maxChars}" placeholder="${escaped(label)}" autocomplete="off" spellcheck="false"></label>`
}

/** Attributes of a form that shows the page anew. `triggers`: of htmx, beside `submit` */
export function search (path: string, ...triggers: readonly string[]) {
  return `role="search" action="${escaped(path)}" method="get" hx-get="${escaped(path)}" hx-trigger="${
    escaped(['submit', ...triggers].join(', '))
  }" hx-target="#main" hx-select="#main" hx-swap="outerMorph" hx-sync="this:replace"`
}

/** Links of which one is the current page. `id`: of the element */
export function tabs (id: string, label: string,
  items: readonly { label: string, url: string, isCurrent: boolean, count: number | null }[], isHidden: boolean = false)
{
  const links = items.map(({ label: text, url, isCurrent, count }) =>
    `<a href="${escaped(url)}"${isCurrent ? ' aria-current="page"' : ''}>${escaped(text)}${
      count === null ? '' : ` <span class="tab-count">${escaped(count)}</span>`
    }</a>`
  )
  return `<nav class="tabs" id="${escaped(id)}" aria-label="${escaped(label)}"${isHidden ? ' hidden' : ''}>\n${
    links.join('\n')
  }\n</nav>`
}

function isPair (item: Column | Choice): item is readonly [string, string] {
  return Array.isArray(item)
}
