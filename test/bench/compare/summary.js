import { median, quantile } from '../figures.js'

/** @typedef {import('./rows.js').Cell} Cell */
/** @typedef {{ median: number, low: number, high: number }} Spread  of the rounds: the half in the middle is from low to high */
/** @typedef {{ pass: number, cell: Cell }} Measured  of one round */
/**
 * How clusterdeck does beside another, by the medians of either half of the rounds: of two runs.
 * @typedef {{ figure: string, own: string, peer: string, ratios: number[], place: Place }} Verdict  `own`, `peer`: names
 * @typedef {'ahead' | 'even' | 'behind' | 'unsettled'} Place  unsettled: ahead in one run, behind in the other
 */

/** Figures of which more says nothing about who is better. */
const NEUTRAL = ['of requests', 'processes']
/** What happened in all rounds together. */
const SUMS = ['failed', 'hung', 'of requests']
const EVEN_BELOW = 1.05

/** @param {string} figure */
const isSum = (figure) => SUMS.some((name) => figure === name || figure.endsWith(` ${name}`))

/** @param {Cell[]} cells of the rounds @returns {Cell} the medians; of what failed or hung all of it */
export function combine (cells) {
  return eachFigure(cells, (figure, values) => isSum(figure) ? sum(values) : median(values))
}

/** @param {Measured[]} rounds @returns {Record<string, number | string | Spread>} */
export function summarize (rounds) {
  return eachFigure(rounds.map(({ cell }) => cell), (figure, values) => {
    if (isSum(figure)) return sum(values)
    if (values.length === 1) return values[0]
    return { median: median(values), low: quantile(values, 0.25), high: quantile(values, 0.75) }
  })
}

/** @template T @param {Cell[]} cells @param {(figure: string, values: number[]) => T} join @returns {Record<string, T | string>} */
function eachFigure (cells, join) {
  return Object.fromEntries(Object.keys(cells[0]).map((figure) => {
    const values = cells.map((cell) => cell[figure])
    const text = values.find((value) => typeof value === 'string')
    return [figure, typeof text === 'string' ? text : join(figure, /** @type {number[]} */ (values))]
  }))
}

/** Adds to each round what its figure is to that of another peer in the same round. @param {Map<string, Measured[]>} measured @param {NonNullable<import('./rows.js').Row['ratios']>} ratios */
export function addRatios (measured, ratios) {
  for (const [name, { figure, to }] of Object.entries(ratios)) {
    const others = measured.get(to) ?? []
    for (const rounds of measured.values()) rounds.forEach(({ cell }, index) => { cell[name] = Number(cell[figure]) / Number(others[index]?.cell[figure]) })
  }
}

/**
 * @param {string[]} figures @param {[own: string, peer: string][]} pairs @param {Map<string, Measured[]>} measured @param {number} passes
 * @returns {Verdict[]} none where one of the two has no figure, or there was only one pass
 */
export function verdictsOf (figures, pairs, measured, passes) {
  const halves = [0, 1].map((half) => new Map([...measured].map(([name, rounds]) => {
    const cells = rounds.filter(({ pass }) => (pass < passes / 2 ? 0 : 1) === half).map(({ cell }) => cell)
    return [name, cells.length > 0 ? combine(cells) : {}]
  })))
  return pairs.flatMap(([own, peer]) => figures.filter((figure) => !NEUTRAL.includes(figure)).flatMap((figure) => {
    const values = halves.map((half) => [half.get(own)?.[figure], half.get(peer)?.[figure]])
    if (!values.flat().every((value) => typeof value === 'number' && !Number.isNaN(value))) return []
    const ratios = values.map(([ours, theirs]) => ours === theirs ? 1 : Number(ours) / Number(theirs))
    return [{ figure, own, peer, ratios, place: placeOf(ratios) }]
  }))
}

/** @param {number[]} ratios of either run; less is better in every figure @returns {Place} */
function placeOf (ratios) {
  const places = ratios.map((ratio) => ratio > EVEN_BELOW ? 'behind' : ratio < 1 / EVEN_BELOW ? 'ahead' : 'even')
  if (places.includes('ahead') && places.includes('behind')) return 'unsettled'
  return /** @type {Place} */ (places.includes('even') ? 'even' : places[0])
}

/** @param {number[]} values */
function sum (values) {
  return values.reduce((total, value) => total + value, 0)
}
