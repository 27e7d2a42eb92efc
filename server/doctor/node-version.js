import { command, finding, inCode } from './finding.js'
import { canUpgrade } from './master.js'

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
  const wanted = SUPPORTED.find((each) => Date.parse(ENDS[each]) > now && isOldEnough(each, now) && (engines === null || satisfies([each, 99, 0], engines) === true))
  const mend = wanted === undefined ? [] : [mendOf(facts, wanted)]
  return [ofSupport(facts, version[0], mend), ...engines === null ? [] : [ofEngines(facts, satisfies(version, engines), mend)]]
}

/** @param {import('./facts.js').Facts} facts @param {number} major @param {import('./finding.js').Mend[]} mend */
function ofSupport ({ now }, major, mend) {
  const end = ENDS[major]
  if (end === undefined) return finding('node', 'unknown', `Until when Node ${major} gets fixes is not known here`)
  if (Date.parse(end) > now) return finding('node', 'ok', `Node ${major} gets fixes until ${end}`)
  return finding('node', 'warning', `Node ${major} has had no fixes since ${end}`, 'Holes that are found in it stay open.', mend)
}

/** @param {import('./facts.js').Facts} facts @param {boolean | null} fits @param {import('./finding.js').Mend[]} mend */
function ofEngines ({ nodeVersion, package: { engines } }, fits, mend) {
  const range = String(engines).slice(0, 60)
  if (fits === null) return finding('engines', 'unknown', `Whether Node ${nodeVersion} is one of "${range}" (engines of package.json) is not known`)
  if (fits) return finding('engines', 'ok', `Node ${nodeVersion} is one that package.json asks for`)
  return finding('engines', 'warning', `package.json asks for Node ${range}, and this is ${nodeVersion}`, 'The app is not made for this version, and may fail in it.', mend)
}

/** @param {import('./facts.js').Facts} facts @param {number} major */
function mendOf (facts, major) {
  const isUpgrade = canUpgrade(facts)
  if (!facts.hasNvm) return inCode(`Install Node ${major}${isUpgrade ? ', and give its path to: clusterdeck upgrade --node PATH --wait' : ', and start the app with it'}`)
  // A Node that nvm activates may have no clusterdeck, so the one of this shell has to make the upgrade.
  return isUpgrade
    ? command(`node=$(. ~/.nvm/nvm.sh && nvm install ${major} >&2 && nvm which ${major}) && clusterdeck upgrade --node "$node" --wait`, facts.config.cwd)
    : command(`. ~/.nvm/nvm.sh && nvm install ${major}`, facts.config.cwd)
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
    case '^': return version[0] === given[0] && order >= 0
    case '~': return version[0] === given[0] && (given.length < 2 || version[1] === given[1]) && order >= 0
    default: return order === 0
  }
}

/** @param {number[]} one @param {number[]} other */
function compare (one, other) {
  const index = one.findIndex((each, at) => each !== other[at])
  return index === -1 ? 0 : one[index] - other[index]
}
