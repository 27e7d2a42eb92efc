import { createInterface } from 'node:readline/promises'
import { readableText } from '../system/one-line.js'
import { drawnStream } from './shown-stream.js'

/**
 * Asks whoever sits at the terminal.
 * @param {string} question @param {Pick<import('./program.js').Terminal, 'stdin' | 'stderr'>} terminal
 * @returns {Promise<boolean | null>} null: nobody can be asked
 */
export async function confirm (question, { stdin = process.stdin, stderr }) {
  if (!stdin.isTTY) return null
  const asking = createInterface({ input: stdin, output: drawnStream(stderr) })
  const reply = await asking.question(`${readableText(question)} [y/N] `)
  asking.close()
  return /^y(es)?$/i.test(reply.trim())
}
