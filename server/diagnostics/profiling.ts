import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { attempt, succeeds } from '../errors.ts'
import { createMergedProfile, type Profile } from './merged-profile.ts'
import { withOriginalPlaces, type Places } from './original-places.ts'
import type { Supervisor } from '../cluster/supervisor.ts'

export type Profiling = ReturnType<typeof createProfiling>

/**
 * A CPU profile of a few seconds of one worker.
 * `at`: when it began, wall, ms
 */
type Slice = { at: number, worker: number, release: string, name: string }
export type Window = { since?: number, until?: number, worker?: number, release?: string }

const SLICE_MS = 5000
/** Each worker is profiled once in this time, or more rarely if there are so many that their turns take longer. */
const EVERY_MS = 60_000
const KEPT_MS = 60 * 60_000
const KEPT_BYTES = 10 * 1024 * 1024
/** A worker wrote the file, so it may unpack to any size. */
const MAX_SLICE_BYTES = 16 * 1024 * 1024
const NAME = /^(\d{13})-w(\d+)-s\d+-(r\d+)\.json\.gz$/

/**
 * Continuous profiling: takes a short CPU profile of one worker after the other, and keeps those of the last hour as
 * files, whose names say all that there is to know of them. The next master goes on with them.
 */
export function createProfiling ({ supervisor, folder, isOn, folderOf, places, time = Date.now }: {
  supervisor: Pick<Supervisor, 'snapshot' | 'tell'>,
  folder: string,
  isOn: () => boolean,
  /** where the code of a release is; null: it is no longer known */
  folderOf: (release: string) => string | null,
  /** of the sources */
  places: Places,
  /** wall, ms */
  time?: () => number
},
  { keptBytes = KEPT_BYTES, everyMs = EVERY_MS, sliceMs = SLICE_MS }: { keptBytes?: number, everyMs?: number,
    sliceMs?: number } = {})
{
  /** by worker: when its last slice began */
  const profiled: Map<number, number> = new Map()
  let timer = setTimeout(takeTurn, sliceMs).unref()
  let hurriesUntil = 0

  return {
    isOn,

    /** Something is wrong just now: each worker gets its turn at once, one after the other. */
    hurry () {
      if (!isOn() || time() < hurriesUntil) return
      hurriesUntil = time() + everyMs
      profiled.clear()
      // A slice that is being taken ends before.
      clearTimeout(timer)
      timer = setTimeout(takeTurn, sliceMs * 1.2).unref()
    },

    list: listSlices,

    /** @returns one profile of all slices of it; `slices`: newest first */
    async read (window: Window): Promise<{ profile: Profile, slices: Slice[] }> {
      const slices = listSlices(window)
      const newest = slices.length > 0 ? folderOf(slices[0].release) : null
      const merged = createMergedProfile()
      for (const slice of slices) {
        const profile = await readSlice(slice)
        if (profile !== null) merged.add(profile, { from: folderOf(slice.release), to: newest })
      }
      return { profile: newest === null ? merged.profile() : withOriginalPlaces(merged.profile(), newest, places),
        slices }
    },

    close () {
      clearTimeout(timer)
    }
  }

  /** Takes the next slice, and looks when the one after it is to be taken. */
  function takeTurn () {
    const workers = isOn() ? listServing() : []
    takeSlice(workers)
    timer = setTimeout(takeTurn,
      Math.max(sliceMs * 1.2, time() < hurriesUntil ? 0 : everyMs / Math.max(1, workers.length))).unref()
  }

  function listServing () {
    return supervisor.snapshot().workers.filter(({ state, pid, runtime, orphan }) =>
      state === 'ready' && pid !== null && runtime !== 'other' && !orphan
    )
  }

  function takeSlice (workers: ReturnType<typeof listServing>) {
    for (const id of profiled.keys()) if (!workers.some((worker) => worker.id === id)) profiled.delete(id)
    const at = time()
    const [next] = workers.filter(({ id }) => at - (profiled.get(Number(id)) ?? 0) >= everyMs * 0.9).sort((a, b) =>
      (profiled.get(Number(a.id)) ?? 0) - (profiled.get(Number(b.id)) ?? 0)
    )
    if (!next) return
    const canWrite = succeeds(() => {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      prune(at)
    })
    // The disk is full or gone, which the history tells: there is nowhere to write to.
    if (!canWrite) return
    profiled.set(Number(next.id), at)
    supervisor.tell(Number(next.id), { type: 'profile',
      file: path.join(folder, `${at}-w${next.id}-s${next.slot}-${next.release}.json.gz`), durationMs: sliceMs })
  }

  /** Removes what is older than an hour, and the oldest beyond the size. */
  function prune (now: number) {
    let bytes = 0
    for (const name of readdirSync(folder).sort().reverse()) {
      const file = path.join(folder, name)
      bytes += statSync(file, { throwIfNoEntry: false })?.size ?? 0
      const age = now - Number.parseInt(name, 10)
      // A clock that was set back leaves files of the future; what has another name is not ours, or was never finished.
      if (!(age <= KEPT_MS && age > -KEPT_MS) || bytes > keptBytes || (!NAME.test(name) && age > 4 * sliceMs))
        rmSync(file, { force: true })
    }
  }

  /** @returns newest first */
  function listSlices ({ since = 0, until = Infinity, worker, release }: Window = {}): Slice[] {
    return namesIn(folder).flatMap(toSlice) // A slice that has begun before the window reaches into it.
      .filter((each) => each.at + sliceMs > since && each.at < until).filter((each) =>
        (worker === undefined || each.worker === worker) && (release === undefined || each.release === release)
      ).sort((a, b) => b.at - a.at)
  }

  /** Null: it was removed meanwhile, or is not whole */
  async function readSlice ({ name }: Slice): Promise<unknown> {
    try {
      return JSON.parse(
        String(await promisify(gunzip)(await readFile(path.join(folder, name)), { maxOutputLength: MAX_SLICE_BYTES }))
      )
    } catch {
      return null
    }
  }
}

function namesIn (folder: string): string[] {
  // There may have been no slice yet.
  const entries = attempt(() => readdirSync(folder, { withFileTypes: true }), [])
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
}

function toSlice (name: string): Slice[] {
  const [, at, worker, release] = NAME.exec(name) ?? []
  return release === undefined ? [] : [{ at: Number(at), worker: Number(worker), release, name }]
}
