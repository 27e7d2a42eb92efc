import { DeckError } from '../errors.js'
import { quotedProgram, quotedWord, wholeLine } from '../systemd/unit-quoting.js'
import { isPrintable } from './literal.js'

/**
 * Writes a small unit file for a program that Node does not run.
 * @param {import('./convert.js').ForeignApp} app
 * @returns {string | null} null: no unit file, or no comment, can hold it
 */
export function unitOf ({ name, unit }) {
  if (unit.command.length === 0) return null
  try {
    const text = unitText(name, unit)
    return text.split('\n').every(isPrintable) ? text : null
  } catch (error) {
    if (error instanceof DeckError) return null
    throw error
  }
}

/** @param {string} name @param {import('./convert.js').ForeignApp['unit']} unit */
function unitText (name, { command: [program, ...args], cwd, variables }) {
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
}
