import { quotedProgram, quotedWord, wholeLine } from '../systemd/unit-quoting.js'
import { DeckError } from '../errors.js'

/**
 * A small unit file for a program that Node does not run.
 * @param {import('./convert.js').ForeignApp} app
 * @returns {string | null} null for what no unit file can hold
 */
export function unitOf ({ name, unit: { command, cwd, variables } }) {
  const [program, ...args] = command
  if (program === undefined) return null
  try {
    const set = Object.entries(variables).filter(([, value]) => value !== null)
    return `[Unit]
Description=${wholeLine('name', name)}
After=network.target

[Service]
ExecStart=${[quotedProgram(program), ...args.map((word) => quotedWord('args', word))].join(' ')}
WorkingDirectory=${wholeLine('cwd', cwd)}
${set.map(([key, value]) => `Environment=${quotedProgram(`${key}=${value}`)}\n`).join('')}Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target`
  } catch (error) {
    if (error instanceof DeckError) return null
    throw error
  }
}
