import path from 'node:path'
import { isFile } from './packages.ts'
import { SHELL_WORDS } from './shell-words.ts'

const MAX_WORDS = 3
const MAX_CHARS = 60
/** What the first argument of many programs is. */
const VERBS = new Set(['run', 'serve', 'server', 'runserver', 'start', 'dev', 'task', 'exec'])
/** These name the app as `module:variable`. For any other program, `name:password` may look like that. */
const NAMES_AN_APP = new Set(['uvicorn', 'gunicorn', 'hypercorn', 'daphne', 'granian', 'waitress-serve', 'uwsgi'])
const IS_APP = /^[A-Za-z_][\w.]*:[A-Za-z_]\w*$/
const IS_PYTHON = /^(python|pypy)[\d.]*$/
const IS_ASSIGNMENT = /^[A-Za-z_]\w*=/
const NO_PROGRAMS = new Set([...SHELL_WORDS, 'then', 'fi', 'do', 'done', '}'])

/**
 * What a person calls another program than Node: `uvicorn app:app`, not `/usr/bin/python3`. Of its arguments it has
 * only what cannot be a secret.
 */
export function programName ({ entry, args, cwd }: { entry: string, args: readonly string[], cwd: string }): string {
  const own = path.basename(entry)
  if (own === 'sh' && args[0] === '-c') return `${shellPrograms(args[1] ?? '') || 'a script'} (by sh)`
  const isModule = IS_PYTHON.test(own) && args[0] === '-m' && /^[\w.]+$/.test(args[1] ?? '')
  const name = isModule ? args[1] : own
  const words = args.slice(isModule ? 2 : 0).filter((word) => isPlain(word, { name, cwd }))
  return clip([name, ...words].slice(0, MAX_WORDS).join(' '))
}

function isPlain (word: string, { name, cwd }: { name: string, cwd: string }) {
  if (word === '' || word.startsWith('-') || word.includes('\0')) return false
  return VERBS.has(word) || (NAMES_AN_APP.has(name) && IS_APP.test(word)) || isFile(path.resolve(cwd, word))
}

/** @returns the programs that a shell is to run, as far as that can be told */
function shellPrograms (text: string): string {
  const names = text.split(/[;&|\n()]+/).map((part) =>
    part.trim().split(/\s+/).find((word) => word !== 'exec' && !IS_ASSIGNMENT.test(word)) ?? ''
  )
  const known = names.filter((name) => /^[\w./@+-]+$/.test(name) && !NO_PROGRAMS.has(name)).map((name) =>
    path.basename(name)
  )
  return clip([...new Set(known)].slice(0, MAX_WORDS).join(', '))
}

function clip (text: string) {
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS - 1)}…` : text
}
