// Breaks a program after its build, in the working folder, so that it does not start: `node test/apps/break-program.ts
// next`
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { PROGRAMS, type Program } from './programs.ts'

export function breakProgram ({ entry, start }: Program, folder: string) {
  for (const file of ['.next/BUILD_ID', 'build/server/index.js',
    ...(entry && !entry.startsWith('node_modules') ? [entry] : []), ...(start ? ['web.cjs'] : []), 'src/index.js'])
  {
    const broken = path.join(folder, file)
    if (!existsSync(broken)) continue
    if (file.endsWith('BUILD_ID')) rmSync(broken)
    else writeFileSync(broken, 'throw new Error(\'broken\')\n')
    return
  }
  throw new Error('nothing to break')
}

if (process.argv[1] === import.meta.filename) {
  const program = PROGRAMS.find(({ name }) => name === process.argv[2])
  if (!program) throw new Error(`expected a program, received ${process.argv[2]}`)
  breakProgram(program, process.cwd())
}
