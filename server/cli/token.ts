import { readFileSync } from 'node:fs'
import path from 'node:path'
import { DeckError, errorCode, errorText } from '../errors.ts'
import { misuse } from './usage.ts'

/** The characters that a header can carry. */
const TOKEN = /^[\x21-\x7e]+$/

/** Takes the token of a flag, or else of a variable. Returns undefined: none is given. @throws {DeckError} usage */
export function givenToken ({ token, tokenFile }: { token?: string, tokenFile?: string },
  { env, cwd }: { env: Record<string, string | undefined>, cwd: string }): string | undefined
{
  if (token !== undefined && tokenFile !== undefined) throw misuse('--token-file', 'without --token', 'both')
  if (token !== undefined) return checkedToken('--token', token)
  if (tokenFile !== undefined) return tokenIn('--token-file', tokenFile, cwd)
  if (env.CLUSTERDECK_TOKEN) return checkedToken('CLUSTERDECK_TOKEN', env.CLUSTERDECK_TOKEN)
  return env.CLUSTERDECK_TOKEN_FILE ? tokenIn('CLUSTERDECK_TOKEN_FILE', env.CLUSTERDECK_TOKEN_FILE, cwd) : undefined
}

function tokenIn (option: string, file: string, cwd: string) {
  try {
    return checkedToken(`${option} ${file}`, readFileSync(path.resolve(cwd, file), 'utf8').trim())
  } catch (error) {
    if (error instanceof DeckError) throw error
    const received = `${JSON.stringify(file)} (${errorCode(error) ?? errorText(error)})`
    throw misuse(option, 'a file with the token in it', received, { cause: error })
  }
}

/** The message does not show the text, which may be most of a secret. */
function checkedToken (source: string, token: string) {
  if (TOKEN.test(token)) return token
  throw misuse(source, 'a token', token === '' ? 'nothing' : 'blanks, or characters that no token has')
}
