import { command, finding, inCode, type Check, type Mend, type Severity } from './finding.ts'
import { judgeNodes, lineToTake, nodesInUse, numbersOf, type Verdict } from './node-lines.ts'
import type { Facts } from './facts.ts'

const SEVERITIES: Readonly<Record<Verdict['state'], Severity>> = Object.freeze({ ended: 'warning', open: 'warning',
  unknown: 'unknown', ok: 'ok' })

/** whether the Nodes of clusterdeck and of the app still get fixes and have them, and whether the app wants its own */
export const checkNode: Check = (facts) => {
  const { nodeVersion, ownNodeVersion, now, package: { engines } } = facts
  const fits = (version: number[]) => engines === null || satisfies(version, engines) === true
  const found = judgeNodes(nodesInUse(ownNodeVersion, nodeVersion, fits), { now }).map(({ state, title, why, take },
    index) =>
    finding(index === 0 ? 'node' : 'app-node', SEVERITIES[state], title, why,
      take === null ? [] : [mendOf(facts, take, index === 0)])
  )
  if (nodeVersion === null || engines === null) return found
  const take = lineToTake(now, fits)
  return [...found,
    ofEngines(nodeVersion, engines, take === null ? [] : [mendOf(facts, take, nodeVersion === ownNodeVersion)])]
}

function ofEngines (nodeVersion: string, engines: string, mend: Mend[]) {
  const range = engines.slice(0, 60)
  const version = numbersOf(nodeVersion)
  const fits = version.length === 0 ? null : satisfies(version, engines)
  if (fits === null)
    return finding('engines', 'unknown',
      `Whether Node ${nodeVersion} is one of "${range}" (engines of package.json) is not known`)
  if (fits) return finding('engines', 'ok', `Node ${nodeVersion} is one that package.json asks for`)
  return finding('engines', 'warning', `package.json asks for Node ${range}, and this is ${nodeVersion}`,
    'The app is not made for this version, and may fail in it.', mend)
}

/** `wanted`: a line or a version; `isOwn`: whether clusterdeck runs on it */
function mendOf (facts: Facts, wanted: string, isOwn: boolean) {
  const isUpgrade = isOwn && facts.running?.isKept
  if (!facts.hasNvm)
    return inCode(
      `Install Node ${wanted}${wanted.includes('.') ? ' or a later one of its line' : ''}${
        isUpgrade ? ', and give its path to: clusterdeck upgrade --node PATH --wait' : ', and start the app with it'
      }`
    )
  const [line] = wanted.split('.')
  // A Node that nvm activates may have no clusterdeck, so the one of this shell has to make the upgrade.
  return isUpgrade
    ? command(
      `node=$(. ~/.nvm/nvm.sh && nvm install ${line} >&2 && nvm which ${line}) && clusterdeck upgrade --node "$node" --wait`,
      facts.config.cwd
    )
    : command(`. ~/.nvm/nvm.sh && nvm install ${line}`, facts.config.cwd)
}

/** `range`: as of package.json. Returns null: it is written in a way that is not read here. */
export function satisfies (version: number[], range: string): boolean | null {
  const ways = range.split('||').map((way) =>
    way.trim().replace(/([<>=~^]+)\s+/g, '$1').split(/\s+/).map((part) => matches(version, part))
  )
  if (ways.flat().includes(null)) return null
  return ways.some((parts) => parts.every(Boolean))
}

/** `part`: such as `>=18.2`, `^20`, `20.x` or `*` */
function matches (version: number[], part: string): boolean | null {
  if (part === '*' || part === '' || part === 'x') return true
  const [, operator, ...numbers] = /^(>=|<=|>|<|=|\^|~|)v?(\d+)(?:\.(\d+|x|\*))?(?:\.(\d+|x|\*))?$/.exec(part) ?? []
  if (operator === undefined) return null
  const given = numbers.filter((each) => each !== undefined && /^\d+$/.test(each)).map(Number)
  const order = compare(version.slice(0, given.length), given)
  switch (operator) {
    case '>=':
      return order >= 0
    case '<=':
      return order <= 0
    case '>':
      return order > 0
    case '<':
      return order < 0
    case '^':
      return version[0] === given[0] && order >= 0
    case '~':
      return version[0] === given[0] && (given.length < 2 || version[1] === given[1]) && order >= 0
    default:
      return order === 0
  }
}

function compare (one: number[], other: number[]) {
  const index = one.findIndex((each, at) => each !== other[at])
  return index === -1 ? 0 : one[index] - other[index]
}
