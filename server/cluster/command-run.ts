import { ChildProcess, spawn } from 'node:child_process'
import { crlfHint } from '../programs/not-executed.ts'
import { oneLine, readableText } from '../system/one-line.ts'
import { signalGroup } from '../system/process-group.ts'
import { identifyProcess, isAlive, type ProcessIdentity } from '../system/process-identity.ts'
import { SHELL_VARIABLE } from '../system/own-variables.ts'
import { limitAsShell, startAsShell } from '../system/shell-limits.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { durationText } from '../lifecycle/duration.ts'
import type { Socket } from 'node:net'
import type { Exit, LeftChild } from './command-left.ts'

export type CommandRun = ReturnType<typeof runCommand>
export type CommandEnd = {
  passed: boolean,
  code: number | null,
  signal: string | null,
  durationMs: number,
  timedOut: boolean,
  /** why it has not passed */
  reason: string | null,
  /** the last of both streams */
  output: string
}

const SH = '/bin/sh'
/** Runs its argument once it has been told to. */
const WAIT = `read -r told <&3; exec ${SH} -c "$1" 3<&-`
const MAX_OUTPUT_CHARS = 8000
const MAX_LAST_LINE_CHARS = 300
/** A command that writes more than this has to wait a moment, so that it slows nobody but itself. */
const MAX_CHARS_AT_ONCE = 512 * 1024
const BREATHER_MS = 50
const TERM_GRACE_MS = 5000
/** Output that a process outside the group holds open is waited for this long. */
const LAST_OUTPUT_MS = 200

/** Runs one command in its own process group. Processes that it leaves in that group end with it. */
export function runCommand ({ command, cwd, env: { [SHELL_VARIABLE]: shell, ...env }, ...order }: {
  /** of the hook or the job */
  name: string,
  /** that has set its timeout */
  option: string,
  /** program and arguments; as one text it is for the shell */
  command: string | readonly string[],
  timeoutMs: number,
  cwd: string,
  env: Record<string, string | undefined>,
  /** how much of its output is kept */
  maxOutputChars?: number,
  /** as it is written */
  onOutput?: (stream: 'stdout' | 'stderr', text: string) => void,
  /** the process has ended; its last output may still follow */
  onExited?: (pid: number) => void
}) {
  const [program, ...args] = typeof command === 'string' ? [command] : command
  return followCommand(spawnChild(), { ...order, place: `${program} in ${cwd}`,
    hint: () => crlfHint([program, ...args], cwd) })

  function spawnChild () {
    try {
      // A shell may look at its limits before these are set.
      const waits = shell !== undefined && typeof command === 'string'
      const child = startAsShell(shell, () =>
        waits
          ? spawn(SH, ['-c', WAIT, SH, command], { cwd, env, detached: true,
            stdio: ['ignore', 'pipe', 'pipe', 'pipe'] })
          : spawn(program, args, { cwd, env, detached: true, shell: typeof command === 'string',
            stdio: ['ignore', 'pipe', 'pipe'] }))
      if (child.pid !== undefined)
        limitAsShell(shell, child.pid)
      // EPIPE: it has ended already.
      if (waits)
        (child.stdio?.[3] as Socket)?.on('error', () => {}).end('\n')
      return child
    } catch (error) {
      // E2BIG, ENOMEM: of some errors node makes an event, of others none.
      const none = new ChildProcess()
      process.nextTick(() => none.emit('error', error))
      return none
    }
  }
}

type Child =
  & Pick<ChildProcess, 'pid' | 'once' | 'removeAllListeners'>
  & { stdout: Socket | null, stderr: Socket | null }

/** Follows a command that runs, and ends it with its whole group. `order`: as of runCommand(). */
export function followCommand (process: ChildProcess | LeftChild,
  { name, option, timeoutMs, place = '', hint = () => null, identity, ageMs = 0, before = '',
    maxOutputChars = MAX_OUTPUT_CHARS, onOutput = () => {}, onExited = () => {} }: {
      name: string,
      option: string,
      timeoutMs: number,
      /** what was to be started where */
      place?: string,
      /** what may help where it has failed */
      hint?: () => string | null,
      /** of a process that may have ended */
      identity?: ProcessIdentity,
      /** for how long it has been running */
      ageMs?: number,
      /** what it has written */
      before?: string,
      maxOutputChars?: number,
      onOutput?: (stream: 'stdout' | 'stderr', text: string) => void,
      onExited?: (pid: number) => void
    })
{
  const startedAt = performance.now() - ageMs
  const child = process as Child
  const { pid } = child
  const output = collectOutput(child, { maxChars: maxOutputChars, before, onOutput })
  let timedOut = false
  let hasExited = false
  /** Why it was told to end. */
  let endedFor: string | null = null
  let killTimer: NodeJS.Timeout | undefined
  const timeout = setTimeout(() => {
    timedOut = endedFor === null
    endRun(`did not end within ${durationText(timeoutMs)} (option ${option})`)
  }, Math.max(0, timeoutMs - ageMs))

  return {
    name,
    /** null: it could not be started */
    identity: identity ?? (pid === undefined ? null : identifyProcess(pid)),
    /** What it writes comes by these. */
    handles: { stdout: child.stdout?._handle ?? null, stderr: child.stderr?._handle ?? null },
    /** Never rejects. */
    ended: new Promise((resolve) => {
      child.once('error', (error: NodeJS.ErrnoException) => {
        // Afterwards it would be a signal that could not be sent.
        if (pid === undefined)
          finishRun({ code: null, signal: null, failure: `could not be started: ${place} (${error.code})` })
      })
      child.once('exit', async (code, signal) => {
        hasExited = true
        signalAll('SIGKILL')
        onExited(Number(pid))
        output.flush()
        await waitAtMost(output.closed, LAST_OUTPUT_MS)
        finishRun({ code, signal, failure: failureOf({ code, signal }) })
      })

      function finishRun (
        { code, signal, failure }: { code: number | null, signal: string | null, failure: string | null }
      ) {
        clearTimeout(timeout)
        clearTimeout(killTimer)
        const text = output.close()
        const durationMs = Math.round(performance.now() - startedAt)
        const why = endedFor ??
          (failure && pid !== undefined ? withLastLine(`${failure} after ${durationText(durationMs)}`, text) : failure)
        const help = failure === null ? null : hint()
        resolve({ passed: why === null, code, signal, durationMs, timedOut,
          reason: why && `${name} ${why}${help ? `; ${help}` : ''}`, output: text })
      }
    }) as Promise<CommandEnd>,

    end: endRun,

    /**
     * Another master goes on with it: whatever has come is passed on, and what it writes from now on stays unread here.
     */
    leave () {
      stopFollowing()
      output.leave()
    },

    /**
     * Somebody else in this process goes on with it, by the same handles.
     * @returns how it ends; null: it has ended, and is followed to its last output
     */
    letGo (): Promise<Exit & { pid: number }> | null {
      if (hasExited) return null
      stopFollowing()
      output.letGo()
      return new Promise((resolve) => child.once('exit', (code, signal) => resolve({ pid: Number(pid), code, signal })))
    }
  }

  function stopFollowing () {
    clearTimeout(timeout)
    clearTimeout(killTimer)
    child.removeAllListeners('exit')
  }

  /** `how`: until whatever is left is killed */
  function endRun (why: string, { graceMs = TERM_GRACE_MS }: { graceMs?: number } = {}) {
    endedFor ??= why
    clearTimeout(timeout)
    clearTimeout(killTimer)
    killTimer = setTimeout(() => signalAll('SIGKILL'), graceMs)
    signalAll('SIGTERM')
  }

  function signalAll (signal: NodeJS.Signals) {
    if (pid !== undefined) signalGroup(pid, signal)
  }
}

/**
 * Ends what a dead master has left running. `graceMs`: until it is killed. Returns whether it still runs; one whose
 * start is not known might be another process by now.
 */
export function endLeftGroup (left: ProcessIdentity, graceMs: number): boolean {
  if (left.startTime === null || !isAlive(left)) return false
  signalGroup(left.pid, 'SIGTERM')
  // While somebody is in it, its number belongs to no other group.
  setTimeout(() => signalGroup(left.pid, 'SIGKILL'), graceMs)
  return true
}

/** `stream`: that may have some that it has not passed on, as it was paused */
function endReading (stream: Socket | null) {
  while (stream?.read() != null);
  stream?.destroy()
}

/** @returns why a command has not passed; null: it has */
export function failureOf ({ code, signal }: { code: number | null, signal: string | null }): string | null {
  if (code === 0) return null
  if (signal) return `was ended by ${signal}`
  return code === null ? 'has ended, and nobody saw how' : `exited with code ${code}`
}

function withLastLine (why: string, output: string) {
  const last = oneLine(output.trimEnd().split('\n').at(-1) ?? '').trim().slice(0, MAX_LAST_LINE_CHARS)
  return last === '' ? why : `${why}: ${last}`
}

/** Keeps the last of what a process writes. */
function collectOutput (child: Child,
  { maxChars, before, onOutput }: { maxChars: number, before: string,
    onOutput: (stream: 'stdout' | 'stderr', text: string) => void })
{
  let text = before
  let isCut = false
  let isExited = false
  for (const name of ['stdout', 'stderr'] as const) {
    const stream = child[name]
    let room = MAX_CHARS_AT_ONCE
    stream?.setEncoding('utf8').on('data', (part: string) => {
      addOutput(part)
      onOutput(name, part)
      room -= part.length
      if (room > 0 || isExited) return
      room = MAX_CHARS_AT_ONCE
      stream.pause()
      setTimeout(() => stream.resume(), BREATHER_MS)
    })
  }

  return {
    closed: new Promise((resolve) => child.once('close', resolve)),

    /** The process has exited: the rest of its output is read at once. */
    flush () {
      isExited = true
      child.stdout?.resume()
      child.stderr?.resume()
    },

    leave () {
      for (const stream of [child.stdout, child.stderr]) endReading(stream)
    },

    /** Does the same as `leave`, but what it writes can still be read by the handles. */
    letGo () {
      for (const stream of [child.stdout, child.stderr]) {
        const handle = stream?._handle
        if (!stream || !handle) continue
        handle.reading = false
        handle.readStop?.()
        stream._handle = null
        endReading(stream)
      }
    },

    /** @returns without control sequences */
    close (): string {
      child.stdout?.destroy()
      child.stderr?.destroy()
      // The cut may have split a character.
      const shown = readableText(text.replace(/^[\udc00-\udfff]/, ''))
      return isCut ? `…${shown}` : shown
    }
  }

  function addOutput (part: string) {
    isCut ||= text.length + part.length > maxChars
    text = (text + part).slice(-maxChars)
  }
}
