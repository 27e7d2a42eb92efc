import { appendFileSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { attempt } from '../errors.ts'
import { textIn } from '../system/proc.ts'

/**
 * So many times what is kept in memory is in a file, and as much in the one before it: for readers that are away while
 * a master follows another.
 */
const IN_FILE = 8

/**
 * What a run has written, for those who follow it: the last part of it, stream by stream, with places that they go on
 * from. A file has the same, as a master that dies takes with it what it has read from the run.
 */
export type RunOutput = ReturnType<typeof createRunOutput>
type Part = { stream: 'stdout' | 'stderr', text: string }

/** `file`: what a master before has read is in it; null: no master goes on with the run */
export function createRunOutput ({ maxChars, file = null }: { maxChars: number, file?: string | null }) {
  const before = file === null ? [] : readParts(file)
  const parts: Part[] = before.map(({ stream, text }) => ({ stream, text }))
  let kept = lengthOf(parts)
  /** How many characters have been written in all. */
  let written = (before[0]?.at ?? 0) + kept
  let inFile = kept
  forgetSurplus()

  return {
    add (stream: Part['stream'], text: string) {
      const part = { stream, text: text.slice(-maxChars) }
      parts.push(part)
      kept += part.text.length
      written += text.length
      forgetSurplus()
      keepInFile(part)
    },

    text: () => parts.map(({ text }) => text).join(''),

    end () {
      if (file !== null) removeOutput(file)
    },

    /**
     * @param place how many characters a reader has had
     * @returns `place`: where it goes on; `missed`: characters that are no longer kept
     */
    since (place: number): { parts: Part[], place: number, missed: number } {
      // On a full disk a master that has died may have shown more than it could keep.
      place = Math.min(place, written)
      const known = place > 0 && place < written - kept ? inFileToo() : parts
      const oldest = written - lengthOf(known)
      const missed = Math.max(0, oldest - place)
      let skipped = Math.max(0, place - oldest)
      const wanted = known.flatMap(({ stream, text }) => {
        const rest = text.slice(skipped)
        skipped = Math.max(0, skipped - text.length)
        return rest === '' ? [] : [{ stream, text: rest }]
      })
      return { parts: wanted, place: written, missed }
    }
  }

  /** @returns where a write has failed, only what is in memory */
  function inFileToo (): Part[] {
    const all = file === null ? [] : readParts(file)
    const last = all.at(-1)
    return last && last.at + last.text.length === written ? all : parts
  }

  function forgetSurplus () {
    while (kept > maxChars) forgetSome(kept - maxChars)
  }

  /** `part`: the last one */
  function keepInFile (part: Part) {
    if (file === null) return
    try {
      if (inFile === 0) mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
      if (inFile >= IN_FILE * maxChars) renameSync(file, `${file}.before`)
      inFile = inFile >= IN_FILE * maxChars ? part.text.length : inFile + part.text.length
      const { stream, text } = part
      appendFileSync(file, `\n${JSON.stringify({ at: written - text.length, stream, text })}`, { mode: 0o600 })
    } catch {
      // ENOSPC and the like: the next master knows less of this run.
    }
  }

  function forgetSome (surplus: number) {
    const [oldest] = parts
    kept -= Math.min(surplus, oldest.text.length)
    oldest.text = oldest.text.slice(surplus)
    if (oldest.text === '') parts.shift()
  }
}

export function removeOutput (file: string) {
  for (const each of [file, `${file}.before`]) rmSync(each, { force: true })
}

function lengthOf (parts: Part[]) {
  return parts.reduce((sum, { text }) => sum + text.length, 0)
}

/** @returns without what was before a gap; `at`: how many characters came before it */
function readParts (file: string): (Part & { at: number })[] {
  let parts: (Part & { at: number })[] = []
  for (const line of `${textIn(`${file}.before`)}\n${textIn(file)}`.split('\n')) {
    const part = parse(line)
    const last = parts.at(-1)
    if (part && last && last.at + last.text.length !== part.at) parts = []
    if (part) parts.push(part)
  }
  return parts
}

/** Null: it was not written to its end */
function parse (line: string): (Part & { at: number }) | null {
  return attempt(() => JSON.parse(line))
}
