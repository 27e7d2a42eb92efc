import { checkAnswers } from './answers.ts'
import { checkClock } from './clock.ts'
import { checkDescriptors } from './descriptors.ts'
import { checkDisk } from './disk.ts'
import { checkDrain } from './drain.ts'
import { gatherFacts, type Facts } from './facts.ts'
import { PROBLEMS, SEVERITIES, type Check } from './finding.ts'
import { checkMaster } from './master.ts'
import { checkMemory } from './memory.ts'
import { checkNode } from './node-version.ts'
import { checkPorts } from './ports.ts'
import { checkReadiness } from './readiness.ts'
import { checkReleaseLayout } from './release-layout.ts'
import { checkService } from './service.ts'
import { checkSharedState } from './shared-state.ts'
import type { Report } from '../api/shapes.ts'

export type { Report }

const CHECKS: readonly Check[] = Object.freeze([checkMaster, checkAnswers, checkReleaseLayout, checkReadiness,
  checkSharedState, checkDrain, checkMemory, checkDescriptors, checkDisk, checkService, checkClock, checkNode,
  checkPorts])

export async function examine (sources: Parameters<typeof gatherFacts>[0]): Promise<Report> {
  return reportOf(await gatherFacts(sources))
}

export function reportOf (facts: Facts): Report {
  const items = CHECKS.flatMap((check) => check(facts)).toSorted((one, other) =>
    SEVERITIES.indexOf(one.severity) - SEVERITIES.indexOf(other.severity)
  )
  return { checkedAt: new Date(facts.now).toISOString(), isRunning: facts.running !== null,
    problems: items.filter(({ severity }) => PROBLEMS.includes(severity)).length, items }
}
