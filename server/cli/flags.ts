import path from 'node:path'
import type { Option } from '../config/options.ts'

/**
 * The words of a command line that say what an option has said, wherever that is run.
 * @param cwd that a relative path begins at
 */
export function flagOf ({ flag, kind }: Option, value: string, cwd: string): string[] {
  return kind === 'switch' ? [flag] : [flag, kind === 'path' ? path.resolve(cwd, value) : value]
}
