import type { DeckEvent } from './stream.ts'

/** Events that are lost. `lost`: how many, null: nobody knows; `from`, `to`: their times; `types`: how many of each. */
export type Loss = { lost: number | null, from: string | null, to: string | null, types: Record<string, number> }

export const NO_LOSS: Readonly<Loss> = Object.freeze({ lost: 0, from: null, to: null, types: {} })
/** The detail has all of them. */
const SHOWN_TYPES = 5

/** @returns `loss` with one more, of a later time */
export function withEvent ({ lost, from, types }: Loss, { at, type }: DeckEvent): Loss {
  return { lost: (lost ?? 0) + 1, from: from ?? at, to: at, types: { ...types, [type]: (types[type] ?? 0) + 1 } }
}

/** @returns both as one. `first`: its events came first */
export function sumOf (first: Loss, second: Loss): Loss {
  const types = { ...first.types }
  for (const [type, count] of Object.entries(second.types)) types[type] = (types[type] ?? 0) + count
  const lost = first.lost === null || second.lost === null ? null : first.lost + second.lost
  return { lost, from: first.from ?? second.from, to: second.to ?? first.to, types }
}

/** In words */
export function lossText ({ lost, from, to, types }: Loss): string {
  if (lost === null) return 'nobody knows how many events were lost, as its file cannot be read'
  if (lost === 0) return 'nothing was lost'
  const most = Object.entries(types).sort(([, one], [, other]) => other - one)
  const shown = most.slice(0, SHOWN_TYPES).map(([type, count]) => `${count} ${type}`)
  const others = most.slice(SHOWN_TYPES).reduce((sum, [, count]) => sum + count, 0)
  return `${lost} ${lost === 1 ? 'event was' : 'events were'} lost, from ${from} to ${to}: ${
    [...shown, ...others > 0 ? [`${others} others`] : []].join(', ')
  }`
}
