import { command, finding, inCode } from './finding.js'

/** From when on a major version of Node gets no more fixes: github.com/nodejs/Release. @type {Readonly<Record<number, string>>} */
const ENDS = Object.freeze({
  16: '2023-09-11', 17: '2022-06-01', 18: '2025-04-30', 19: '2023-06-01', 20: '2026-04-30', 21: '2024-06-01', 22: '2027-04-30', 23: '2025-06-01', 24: '2028-04-30', 25: '2026-06-01', 26: '2029-04-30'
})
/** Versions with long-term support, the newest first. */
const SUPPORTED = Object.freeze([26, 24, 22])

/** @type {import('./finding.js').Check} whether this Node still gets fixes, and is one that the app wants */
export function checkNode (facts) {
  const { nodeVersion, now, package: { engines } } = facts
  const version = /^v?(\d+)\.(\d+)\.(\d+)/.exec(nodeVersion)?.slice(1).map(Number)
  if (!version) return [finding('node', 'unknown', `Node ${nodeVersion} is not known here`)]
  const [major] = version
  const end = ENDS[major]
  const fits = engines === null ? null : satisfies(version, engines)
  const wanted = SUPPORTED.find((each) => Date.parse(ENDS[each]) > now && isOldEnough(each, now) && (engines === null || satisfies([each, 99, 0], engines) === true))
  return [
    end === undefined
      ? finding('node', 'unknown', `Until when Node ${major} gets fixes is not known here`)
      : Date.parse(end) <= now
        ? finding('node', 'warning', `Node ${major} has had no fixes since ${end}`, 'Holes that are found in it stay open.', wanted === undefined ? [] : mendOf(facts, wanted))
        : finding('node', 'ok', `Node ${major} gets fixes until ${end}`),
    ...(engines === null
      ? []
      : [fits === null
          ? finding('engines', 'unknown', `Whether Node ${nodeVersion} is one of "${engines.slice(0, 60)}" (engines of package.json) is not known`)
          : fits
            ? finding('engines', 'ok', `Node ${nodeVersion} is one that package.json asks for`)
            : finding('engines', 'warning', `package.json asks for Node ${engines.slice(0, 60)}, and this is ${nodeVersion}`, 'The app is not made for this version, and may fail in it.', wanted === undefined ? [] : mendOf(facts, wanted))])
  ]
}

/** @param {import('./facts.js').Facts} facts @param {number} major */
function mendOf ({ hasNvm, running, config }, major) {
  const canUpgrade = running?.isKept && config.dispatch !== 'round-robin'
  if (!hasNvm) return [inCode(`Install Node ${major}${canUpgrade ? ', and give its path to: clusterdeck upgrade --node PATH --wait' : ', and start the app with it'}`)]
  // A Node that nvm activates may have no clusterdeck, so the one of this shell has to make the upgrade.
  return [canUpgrade
    ? command(`node=$(. ~/.nvm/nvm.sh && nvm install ${major} >&2 && nvm which ${major}) && clusterdeck upgrade --node "$node" --wait`, config.cwd)
    : command(`. ~/.nvm/nvm.sh && nvm install ${major}`, config.cwd)]
}

/** Long-term support begins in October of the year of the first version. @param {number} major @param {number} now */
function isOldEnough (major, now) {
  return now >= Date.parse(`${2022 + (major - 18) / 2}-10-29`)
}

/**
 * @param {number[]} version @param {string} range as of package.json
 * @returns {boolean | null} null: it is written in a way that is not read here
 */
export function satisfies (version, range) {
  const ways = range.split('||').map((way) => way.trim().replace(/([<>=~^]+)\s+/g, '$1').split(/\s+/).map((part) => matches(version, part)))
  if (ways.flat().includes(null)) return null
  return ways.some((parts) => parts.every(Boolean))
}

/** @param {number[]} version @param {string} part such as `>=18.2`, `^20`, `20.x` or `*` @returns {boolean | null} */
function matches (version, part) {
  if (part === '*' || part === '' || part === 'x') return true
  const [, operator, ...numbers] = /^(>=|<=|>|<|=|\^|~|)v?(\d+)(?:\.(\d+|x|\*))?(?:\.(\d+|x|\*))?$/.exec(part) ?? []
  if (operator === undefined) return null
  const given = numbers.filter((each) => each !== undefined && /^\d+$/.test(each)).map(Number)
  const order = compare(version.slice(0, given.length), given)
  switch (operator) {
    case '>=': return order >= 0
    case '<=': return order <= 0
    case '>': return order > 0
    case '<': return order < 0
    case '^': return version[0] === given[0] && compare(version.slice(0, given.length), given) >= 0
    case '~': return version[0] === given[0] && (given.length < 2 || version[1] === given[1]) && order >= 0
    default: return order === 0
  }
}

/** @param {number[]} one @param {number[]} other */
function compare (one, other) {
  const index = one.findIndex((each, at) => each !== other[at])
  return index === -1 ? 0 : one[index] - other[index]
}
