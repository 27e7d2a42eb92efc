import path from 'node:path'
import { openSqlite } from '../../db/sqlite.ts'
import { FAULTS, isOneOf } from '../../server/causes.ts'
import type { Deeds } from './site.ts'

type Row = { id: number, type: string, cause: string | null, worker: number | null, pid: number | null,
  rollout: number | null, message: string | null, detail: string | null }

/** The history may have had room for one event more. */
const VITALS_ON_FULL_DISK = 'the vitals could not be written: database or disk is full'

/**
 * Where the history of a deck that has stopped does not tell exactly what was done to it. `folder`: of its data.
 * @returns in words; none where it does
 */
export function findFalseHistory (folder: string, deeds: Deeds): string[] {
  const db = openSqlite(path.join(folder, 'history.db'), { readonly: true })
  const integrity = db.pragma('integrity_check', { simple: true })
  const rows = db.prepare('SELECT id, type, cause, worker, pid, rollout, message, detail FROM events ORDER BY id')
    .all() as Row[]
  db.close()
  const of = (...types: string[]) => rows.filter(({ type }) => types.includes(type))
  const masters = of('master.stopped').filter(({ cause }) => cause === 'master-lost').map(({ pid }) => Number(pid))
  return [...differ('the database', 'ok', integrity),
    ...differ('unexpected events', '',
      of('unexpected').filter(({ message }) => message !== VITALS_ON_FULL_DISK).map(({ message }) => message).join(
        '; '
      )), ...differ('masters lost', deeds.lostMasters.join(), masters.join()),
    ...differ('upgrades', deeds.upgrades, of('master.upgraded').length),
    ...differ('boot failures', deeds.badDeploys,
      of('worker.exited').filter(({ cause }) => cause === 'boot-failure').length),
    ...differ('changes of scale', deeds.scales, of('scale.changed').length),
    ...Object.entries(deeds.rollouts).flatMap(([kind, count]) =>
      differ(`rollouts, ${kind}`, count, of('rollout.started').filter(({ detail }) =>
        JSON.parse(String(detail)).kind === kind
      ).length)
    ), ...findFalseRollouts(of('rollout.started'), of('rollout.succeeded', 'rollout.failed', 'rollout.rolled-back')),
    ...findFalseWorkers(of('worker.forked'), of('worker.exited')),
    ...findFalseDeaths(deeds.lostWorkers, of('worker.exited')),
    ...differ('ends of a history that could not be written', of('history.degraded').length > 0,
      of('history.recovered').length > 0)]
}

/** Each has one end. */
function findFalseRollouts (started: Row[], ended: Row[]) {
  return started.flatMap(({ rollout }) =>
    differ(`ends of rollout ${rollout}`, 1, ended.filter((end) => end.rollout === rollout).length)
  )
}

/** Each begins once and ends once. */
function findFalseWorkers (forked: Row[], exited: Row[]) {
  const workers = new Set([...forked, ...exited].map(({ worker }) => worker))
  return [...workers].flatMap((
    id
  ) => [...differ(`forks of worker ${id}`, 1, forked.filter(({ worker }) => worker === id).length),
    ...differ(`exits of worker ${id}`, 1, exited.filter(({ worker }) => worker === id).length)]
  )
}

/**
 * Those that were made to die did, as they were, and no others but the workers of a release that does not start. One
 * that collects garbage until its heap is full is silent, and on a busy machine the watchdog may be first.
 */
function findFalseDeaths (lost: Deeds['lostWorkers'], exited: Row[]) {
  const pids = new Set(lost.map(({ pid }) => pid))
  return [...lost.flatMap(({ pid, cause }) => {
    const [exit] = exited.filter((row) => row.pid === pid)
    const isWatchdogFirst = cause === 'out-of-memory' && exit?.cause === 'hung'
    return exit && (cause === null || isWatchdogFirst) ? [] : differ(`the end of process ${pid}`, cause, exit?.cause)
  }),
    ...exited.filter(({ pid, cause }) => isOneOf(FAULTS, cause) && cause !== 'boot-failure' && !pids.has(Number(pid)))
      .map(({ pid, cause }) => `process ${pid} ended by ${cause}, and nobody did that`)]
}

function differ (what: string, expected: unknown, received: unknown) {
  return expected === received ? [] : [`history, ${what}: expected ${expected}, received ${received}`]
}
