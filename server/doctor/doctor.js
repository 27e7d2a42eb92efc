import { checkClock } from './clock.js'
import { checkDescriptors } from './descriptors.js'
import { checkDisk } from './disk.js'
import { checkDrain } from './drain.js'
import { gatherFacts } from './facts.js'
import { PROBLEMS, SEVERITIES } from './finding.js'
import { checkMaster } from './master.js'
import { checkMemory } from './memory.js'
import { checkNode } from './node-version.js'
import { checkPorts } from './ports.js'
import { checkReadiness } from './readiness.js'
import { checkReleaseLayout } from './release-layout.js'
import { checkService } from './service.js'
import { checkSharedState } from './shared-state.js'

/**
 * What could drop a request or lose a release.
 * @typedef {{ checkedAt: string, isRunning: boolean, problems: number, items: import('./finding.js').Finding[] }} Report
 *   `problems`: how many are errors or warnings; `items`: the worst first
 */

/** @type {readonly import('./finding.js').Check[]} */
const CHECKS = Object.freeze([
  checkMaster, checkReleaseLayout, checkReadiness, checkSharedState, checkDrain, checkMemory, checkDescriptors, checkDisk, checkService, checkClock, checkNode, checkPorts
])

/** @param {Parameters<typeof gatherFacts>[0]} sources @returns {Promise<Report>} */
export async function examine (sources) {
  return reportOf(await gatherFacts(sources))
}

/** @param {import('./facts.js').Facts} facts @returns {Report} */
export function reportOf (facts) {
  const items = CHECKS.flatMap((check) => check(facts)).toSorted((one, other) => SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity))
  return {
    checkedAt: new Date(facts.now).toISOString(),
    isRunning: facts.running !== null,
    problems: items.filter(({ severity }) => PROBLEMS.includes(severity)).length,
    items
  }
}
