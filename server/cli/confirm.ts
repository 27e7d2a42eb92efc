import { createInterface } from 'node:readline/promises'
import { readableText } from '../system/one-line.ts'
import { drawnStream } from './shown-stream.ts'
import type { Terminal } from './program.ts'

/** Asks whoever sits at the terminal. Returns null: nobody can be asked. */
export async function confirm (question: string,
  { stdin = process.stdin, stderr }: Pick<Terminal, 'stdin' | 'stderr'>): Promise<boolean | null>
{
  if (!stdin.isTTY) return null
  const asking = createInterface({ input: stdin, output: drawnStream(stderr) })
  const reply = await asking.question(`${readableText(question)} [y/N] `)
  asking.close()
  return /^y(es)?$/i.test(reply.trim())
}
