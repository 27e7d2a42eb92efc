import { createInterface } from 'node:readline/promises'

/**
 * Asks whoever sits at the terminal.
 * @param {string} question @param {Pick<import('./program.js').Terminal, 'stdin' | 'stderr'>} terminal
 * @returns {Promise<boolean | null>} null: nobody can be asked
 */
export async function confirm (question, { stdin = process.stdin, stderr }) {
  if (!stdin.isTTY) return null
  const asking = createInterface({ input: stdin, output: stderr })
  const reply = await asking.question(`${question} [y/N] `)
  asking.close()
  return /^y(es)?$/i.test(reply.trim())
}
