import { median, quantile } from '../figures.ts'
import type { Cell, Row } from './rows.ts'

/** of the rounds: the half in the middle is from low to high */
export type Spread = { median: number, low: number, high: number }
/** of one round */
export type Measured = { pass: number, cell: Cell }
/**
 * How clusterdeck does beside another, by the medians of either half of the rounds: of two runs.
 * `own`, `peer`: names
 */
export type Verdict = { figure: string, own: string, peer: string, ratios: number[], place: Place }
/** unsettled: ahead in one run, behind in the other */
type Place = 'ahead' | 'even' | 'behind' | 'unsettled'

/** Figures of which more says nothing about who is better. */
const NEUTRAL = ['of requests', 'processes']
/** What happened in all rounds together. */
const SUMS = ['failed', 'hung', 'of requests']
const EVEN_BELOW = 1.05

const isSum = (figure: string) => SUMS.some((name) => figure === name || figure.endsWith(` ${name}`))

/** `cells`: of the rounds. Returns the medians; of what failed or hung all of it. */
export function combine (cells: Cell[]): Cell {
  return eachFigure(cells, (figure, values) => isSum(figure) ? sum(values) : median(values))
}

export function summarize (rounds: Measured[]): Record<string, number | string | Spread> {
  return eachFigure(rounds.map(({ cell }) => cell), (figure, values) => {
    if (isSum(figure)) return sum(values)
    if (values.length === 1) return values[0]
    return { median: median(values), low: quantile(values, 0.25), high: quantile(values, 0.75) }
  })
}

function eachFigure<T> (cells: Cell[], join: (figure: string, values: number[]) => T): Record<string, T | string> {
  return Object.fromEntries(Object.keys(cells[0]).map((figure) => {
    const values = cells.map((cell) => cell[figure])
    const text = values.find((value) => typeof value === 'string')
    return [figure, typeof text === 'string' ? text : join(figure, values as number[])]
  }))
}

/** Adds to each round what its figure is to that of another peer in the same round. */
export function addRatios (measured: Map<string, Measured[]>, ratios: NonNullable<Row['ratios']>) {
  for (const [name, { figure, to }] of Object.entries(ratios)) {
    const others = measured.get(to) ?? []
    for (const rounds of measured.values())
      rounds.forEach(({ cell }, index) => {
        cell[name] = Number(cell[figure]) / Number(others[index]?.cell[figure])
      })
  }
}

/** @returns none where one of the two has no figure, or there was only one pass */
export function verdictsOf (figures: string[], pairs: [own: string, peer: string][], measured: Map<string, Measured[]>,
  passes: number): Verdict[]
{
  const halves = [0, 1].map((half) =>
    new Map([...measured].map(([name, rounds]) => {
      const cells = rounds.filter(({ pass }) => (pass < passes / 2 ? 0 : 1) === half).map(({ cell }) => cell)
      return [name, cells.length > 0 ? combine(cells) : {}]
    }))
  )
  return pairs.flatMap(([own, peer]) =>
    figures.filter((figure) => !NEUTRAL.includes(figure)).flatMap((figure) => {
      const values = halves.map((half) => [half.get(own)?.[figure], half.get(peer)?.[figure]])
      if (!values.flat().every((value) => typeof value === 'number' && !Number.isNaN(value))) return []
      const ratios = values.map(([ours, theirs]) => ours === theirs ? 1 : Number(ours) / Number(theirs))
      return [{ figure, own, peer, ratios, place: placeOf(ratios) }]
    })
  )
}

/** `ratios`: of either run; less is better in every figure */
function placeOf (ratios: number[]): Place {
  const places = ratios.map((ratio) => ratio > EVEN_BELOW ? 'behind' : ratio < 1 / EVEN_BELOW ? 'ahead' : 'even')
  if (places.includes('ahead') && places.includes('behind')) return 'unsettled'
  return (places.includes('even') ? 'even' : places[0]) as Place
}

function sum (values: number[]) {
  return values.reduce((total, value) => total + value, 0)
}
