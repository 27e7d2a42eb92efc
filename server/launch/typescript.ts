import { readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { installedPackage } from './packages.ts'

const IS_TYPESCRIPT = /\.(ts|mts|cts|tsx)$/
const LOADS_IT = /ts-?node|tsx|tsm|swc|esbuild|sucrase|jiti|babel|typescript/
const LOADER_OPTIONS = /^(-r|--require|--import|--loader|--experimental-loader)(=|$)/
const STRIPS = /^--experimental-(strip|transform)-types$/

/**
 * What Node needs to run this file beside what it is given. `stripsTypes`: `process.features.typescript` of the
 * workers' Node: whether it does so unasked. Returns options of node; null: there is no way.
 */
export function typeScriptOptions ({ entry, execArgv, cwd }: { entry: string, execArgv: string[], cwd: string },
  stripsTypes: unknown): string[] | null
{
  if (!IS_TYPESCRIPT.test(entry) || loadsTypeScript(execArgv)) return []
  const strips = Boolean(stripsTypes) || execArgv.some((word) => STRIPS.test(word))
  // It does not know JSX, and leaves what is installed alone.
  if (strips && !entry.endsWith('x') && !entry.includes('/node_modules/')) return []
  const loader = tsxLoader(cwd, path.dirname(entry))
  return loader === null ? null : ['--import', loader]
}

function loadsTypeScript (execArgv: string[]) {
  return execArgv.some((word, index) =>
    LOADER_OPTIONS.test(word) && LOADS_IT.test(`${word} ${execArgv[index + 1] ?? ''}`)
  )
}

/**
 * `cwd`: that node resolves `--import` from; `folder`: of the app. Returns what `--import` is to be given; null: it is
 * not installed.
 */
export function tsxLoader (cwd: string, folder: string = cwd): string | null {
  if (installedPackage('tsx', cwd)) return 'tsx'
  const installed = installedPackage('tsx', folder)
  if (!installed) return null
  const { exports } = JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8'))
  const main = typeof exports?.['.'] === 'string' ? exports['.'] : './dist/loader.mjs'
  return pathToFileURL(path.join(installed, main)).href
}
