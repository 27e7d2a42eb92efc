import { parseStack, placedIn } from './stack-frames.ts'
import type { CrashRecord, Frame } from '../../db/crashes.ts'
import type { CrashNote } from '../../workers/crash-note.ts'
import type { Place } from './traces/trace.ts'
import type { NewEvent, Detail } from '../events/stream.ts'

const MAX_STDERR_LINE_CHARS = 2000
/** The code of a shell that may not execute a command. */
const NOT_EXECUTABLE = 126

/**
 * The worker wrote all of it, the master only an error; `places`: as a program of another language has written its
 * stack.
 */
export type ExitNote =
  & Pick<CrashNote, 'errorName' | 'errorMessage' | 'stack'>
  & Partial<Omit<CrashNote, 'kind'>>
  & { kind?: CrashRecord['kind'], places?: Place[] | null }

/** A `worker.exited` that is about to be published. */
export type Exit = NewEvent

export function toRecord (event: Exit, { note, memoryKind, root, stderr, vitals, isProgram = false, at, original }: {
  note: ExitNote | null,
  memoryKind: CrashRecord['kind'] | null,
  /** the release's folder */
  root: string | null,
  stderr: string[],
  vitals: unknown[],
  /** whether it was another program than Node */
  isProgram?: boolean,
  at: number,
  original: (frames: Frame[], root: string | null) => Frame[]
}): CrashRecord {
  const stack = note?.stack ?? (event.cause === 'hung' ? (event.detail as Detail)?.stack ?? null : null)
  return { at: new Date(at).toISOString(), cause: String(event.cause), kind: kindOf(event, note, memoryKind),
    code: event.code ?? null, signal: event.signal ?? null, slot: event.slot ?? null, worker: event.worker ?? null,
    pid: event.pid ?? null, release: event.release ?? null, rollout: event.rollout ?? null,
    uptimeMs: event.uptimeMs ?? null, nodeVersion: isProgram ? null : note?.nodeVersion || process.version,
    errorName: note?.errorName ?? null, errorMessage: note?.errorMessage ?? event.message ?? null, stack,
    frames: note?.places
      ? note.places.map((place) => placedIn(place, root))
      : original(parseStack(stack, { root }), root), causes: note?.causes ?? [], requests: note?.requests ?? [],
    memory: note?.memory ?? null, stderr: stderr.map((line) => line.slice(0, MAX_STDERR_LINE_CHARS)), vitals }
}

/** A function without a name, and the top level of a file of CommonJS, Python and Ruby. */
const NAMELESS = [null, 'Object.<anonymous>', '<module>', '<main>']

export function culpritOf ({ frames }: CrashRecord): string | null {
  const frame = frames.find(({ isInApp }) => isInApp)
  if (!frame) return null
  return (NAMELESS.includes(frame.function) ? String(frame.file) : `${frame.function} (${frame.file})`).slice(0, 300)
}

type Kind = CrashRecord['kind']

function kindOf ({ cause, code, signal, pid, actor }: Exit, note: ExitNote | null, memoryKind: Kind | null): Kind {
  if (cause === 'hung') return 'hung'
  if (memoryKind) return memoryKind
  if (note) return note.kind ?? (code === NOT_EXECUTABLE || pid == null ? 'not-started' : 'boot-failure')
  // It was ended because it was not ready in time.
  if (cause === 'boot-failure' && actor) return 'boot-failure'
  return signal === null || signal === undefined ? 'exit-code' : 'signal'
}
