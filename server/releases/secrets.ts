import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { errorCode } from '../errors.ts'
import { withoutOwnVariables } from '../system/own-variables.ts'
import { failed, readOutput } from './secrets-command.ts'
import { readSmallFile } from './small-file.ts'
import type { Config } from '../config/config.ts'

/**
 * Variables that are on no disk. Their values are in the memory of this process and in the environment of workers,
 * hooks and runs, and nowhere else: no message here has a value, or what could be one.
 */
type SecretsConfig = NonNullable<Config['secrets']>
/** of a command; `env`: of the shell that the app is from, as workers have it */
type Place = { cwd: string, env: Record<string, string | undefined> }

const NAME = /^[A-Za-z_]\w{0,199}$/
/** Variables that decide which code runs: whoever may only set a secret must not. */
const RUNS_CODE =
  /^(PATH|NODE_OPTIONS|NODE_PATH|NODE_CHANNEL_\w+|NODE_UNIQUE_ID|BASH_ENV|OPENSSL_CONF|GCONV_PATH|LD_(PRELOAD|LIBRARY_PATH|AUDIT)|DYLD_\w+)$/
/** One entry of a file of variables, a comment, or an empty line. */
const LINE = /[ \t]*(?:#[^\n]*|(?:export[ \t]+)?[A-Za-z_]\w*[ \t]*=[ \t]*(?:"[^"]*"|'[^']*'|`[^`]*`)?[^\n]*)?(?:\n|$)/y

/** @throws {import('../errors.ts').DeckError} secrets-failed */
export async function readSecrets (secrets: SecretsConfig, place: Place): Promise<Record<string, string>> {
  const values = secrets.from === 'systemd-creds'
    ? await readFolder(place.env.CREDENTIALS_DIRECTORY)
    : await readText(secrets, place)
  for (const name of Object.keys(values)) checkName(name)
  if (Object.keys(values).length === 0) throw failed('at least one variable', 'none')
  return values
}

async function readText (secrets: Exclude<SecretsConfig, { from: 'systemd-creds' }>, place: Place) {
  const bytes = secrets.from === 'command'
    ? await readOutput(secrets, place)
    : await readSmallFile(secrets.file, refusalOf(secrets.file))
  return PARSERS[secrets.format](textOf(bytes, 'UTF-8 text'))
}

/** Each file of a folder is a variable. */
async function readFolder (folder: string | undefined): Promise<Record<string, string>> {
  if (!folder)
    throw failed('CREDENTIALS_DIRECTORY in the environment of the app, as systemd sets it for LoadCredential=', 'none')
  const names = await readdir(folder).catch((error) => {
    throw failed(`a folder of files, CREDENTIALS_DIRECTORY (${folder})`, `${errorCode(error)}`)
  })
  const misnamed = names.find((name) => !NAME.test(name))
  if (misnamed !== undefined)
    throw failed('credentials with names of variables such as DB_PASSWORD', JSON.stringify(misnamed.slice(0, 100)))
  return Object.fromEntries(await Promise.all(names.map(async (name) => {
    const file = path.join(folder, name)
    // Most programs that write a text into a file put a newline behind it, which is no part of the value.
    return [name,
      textOf(await readSmallFile(file, refusalOf(file)), `text in the credential ${name}`).replace(/\r?\n$/, '')]
  })))
}

function refusalOf (file: string): (why: string) => Error {
  return (why) => failed('a file', `${file}, ${why}`)
}

/** @returns without a byte order mark */
function textOf (bytes: Buffer, expected: string): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    // The system would cut a value at a NUL, so node refuses to start a process with one.
    if (!text.includes('\0')) return text
  } catch {
    // TypeError: bytes that are no UTF-8 would come out as other ones.
  }
  throw failed(expected, 'other bytes')
}

const PARSERS: Record<'json' | 'env', (text: string) => Record<string, string>> = { json (text) {
  const content = parseJson(text)
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    throw failed('a JSON object of texts', 'something else')
  for (const [name, value] of Object.entries(content)) {
    checkName(name)
    // 5432 could be given as it is, but not 1.10 or a number of 20 digits.
    if (typeof value !== 'string') throw failed(`a text for ${name}`, kindOf(value))
    if (value.includes('\0')) throw failed(`a text for ${name}`, 'one with a NUL')
  }
  return content as Record<string, string>
}, env (text) {
  const lines = text.replaceAll('\r\n', '\n')
  // parseEnv() skips what it does not understand: a message of the program, or a key of several lines without quotes.
  LINE.lastIndex = 0
  for (let at = 0; at < lines.length; at = LINE.lastIndex) {
    LINE.lastIndex = at
    if (!LINE.test(lines))
      throw failed('lines of NAME=value (format: "env")',
        `something else in line ${lines.slice(0, at).split('\n').length}`)
  }
  return { ...parseEnv(lines) } as Record<string, string>
} }

/** `value`: that is no text */
function kindOf (value: unknown) {
  if (typeof value === 'object') return value === null ? 'null' : Array.isArray(value) ? 'a list' : 'an object'
  return `a ${typeof value}: put it into quotes`
}

function parseJson (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The message of JSON.parse quotes the text, so it is no cause either.
    throw failed('a JSON object of texts (format: "json")', 'no JSON')
  }
}

/** A name that is none may be a part of a value, so it is not shown. */
function checkName (name: string) {
  if (!NAME.test(name))
    throw failed('names of variables such as DB_PASSWORD', 'one with other characters, or more than 200')
  if (RUNS_CODE.test(name)) throw failed(`secrets, and ${name} decides which code runs: set it by env`, name)
  if (withoutOwnVariables({ [name]: '' })[name] === undefined) throw failed('names that an app gets', name)
}
