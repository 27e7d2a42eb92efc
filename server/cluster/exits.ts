import { nativeModuleHint } from '../crashes/native-module.ts'
import { crlfHint } from '../programs/not-executed.ts'
import { runtimeOf, type Fact } from '../lifecycle/state.ts'
import { bindHint } from './bind-hint.ts'
import { connectionsHint } from './connections-hint.ts'
import type { CrashRecorder } from '../crashes/recorder.ts'
import type { Exit, ToldExit } from '../lifecycle/loss.ts'
import type { Release, Unfinished } from '../lifecycle/state.ts'
import type { Cluster } from './cluster.ts'
import type { Parts } from './parts.ts'

/** Keeps what is known of a worker's end, from its exit until the event is on record. */
export function createExits (cluster: Cluster, { watchdog, sockets }: Parts) {
  const { crashes, vitals } = cluster
  /** by worker */
  const findings: Map<number, Omit<Parameters<CrashRecorder['record']>[1], 'root'>> = new Map()

  return {
    /** `worker`: has ended */
    hear (worker: number, exit: ToldExit) {
      const known = cluster.state.workers[worker]
      const error = exit.error ?? watchdog.takeNote(worker)
      const unfinished = exit.unfinished
        ? { ...exit.unfinished, isReported: false }
        : exit.signal === null || exit.isAsTold
        ? null
        : lastReported(worker)
      const told = { ...exit, error, unfinished }
      const end = known ? examine(known, told) : told
      cluster.emit('left', worker)
      cluster.receive({ type: 'worker-exited', worker, ...end })
    },

    examine,

    /** `event`: where it is `worker.exited`, it is returned with its crash if there was one */
    record (event: Fact): Fact {
      if (event.type !== 'worker.exited') return event
      const worker = Number(event.worker)
      const found = findings.get(worker)
      findings.delete(worker)
      const root = cluster.state.releases[String(event.release)]?.path ?? null
      return found ? crashes.record(event, { ...found, root }) : event
    }
  }

  /** @returns with what has been found */
  function examine (
    { id, slot, pid, release, readyAt }: { id: number, slot: number | null, pid: number | null, release: string,
      readyAt: string | null },
    exit: Exit
  ): Exit {
    const { code, signal, isAsTold, isOutOfMemory } = exit
    const about = { hasStarted: readyAt !== null, isProgram: runtimeOf(cluster.state, release) === 'other', isAsTold,
      isOutOfMemory }
    const found = crashes.examine({ slot, worker: id, pid, code, signal, ...about })
    const note = exit.error ?? found.note
    findings.set(id, { ...found, note, isProgram: about.isProgram })
    const why = note?.errorMessage ?? found.said ?? ''
    const hint = exit.hint ?? connectionsHint(why, { isBesideOther: serving(id).some((other) =>
      other.slot === slot
    ) }) ??
      (about.hasStarted ? null : hintFor(id, release, why))
    return { ...exit, error: note, said: found.said, hint, isOutOfMemory: found.memoryKind !== null }
  }

  /** `worker`: was killed and could not report its open requests */
  function lastReported (worker: number): Unfinished | null {
    const report = vitals.lastMinute(worker).at(-1) ?? null
    return report && { requests: report.inFlight ?? 0, connections: report.openConnections ?? 0, isReported: true }
  }

  /** `why`: as it has said itself. Returns what may help one that has ended before it was ready. */
  function hintFor (worker: number, id: string, why: string): string | null {
    const { workers, releases } = cluster.state
    const release: Release | undefined = releases[id]
    const node = release?.node ?? { file: process.execPath, version: process.versions.node }
    return crlfHintOf(release) ?? nativeModuleHint(why, node) ??
      bindHint(why, { refused: sockets.refused(worker, release?.entry), note: workers[worker]?.socketNotes?.[0] ?? null,
        hasOthers: serving(worker).length > 0 })
  }

  /** All but this one. */
  function serving (worker: number) {
    return Object.values(cluster.state.workers).filter((other) => other.id !== worker && other.readyAt !== null)
  }
}

function crlfHintOf (release: Release | undefined) {
  return release?.runtime === 'other' ? crlfHint([release.entry, ...release.args ?? []], release.cwd ?? '/') : null
}
