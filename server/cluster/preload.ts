import { pathToFileURL } from 'node:url'
import { plugAndPlayFirst, plugAndPlayFirstOf } from '../launch/preloads.ts'
import { scriptPath } from '../system/built.ts'

const BY_REQUIRE = scriptPath('preload.cjs')
const BY_IMPORT = pathToFileURL(scriptPath('preload.js')).href
const IMPORTS = /(^|\s)--import(=|\s|$)/

/**
 * Has a worker load our part before anything that the user preloads. Node loads what `--require` names before what
 * `--import` names, and for each of them NODE_OPTIONS first, which it does not read where the system has given the
 * binary further powers. So our part is in both. Only Yarn's Plug'n'Play comes before it. `own`: of the user's. Returns
 * `hasImports`: ours is also the last of what is imported.
 */
export function withPreload (
  { execArgv, nodeOptions }: { execArgv: readonly string[], nodeOptions: string | undefined }
): { execArgv: string[], nodeOptions: string | undefined, hasImports: boolean } {
  const hasImports = IMPORTS.test([...execArgv, nodeOptions ?? ''].join(' '))
  const { first, rest } = plugAndPlayFirst(execArgv)
  return { execArgv: [...first, '--require', BY_REQUIRE, ...rest, ...(hasImports ? ['--import', BY_IMPORT] : [])],
    nodeOptions: nodeOptions && inNodeOptions(nodeOptions, first), hasImports }
}

/** `others`: what else has to be loaded before ours */
function inNodeOptions (nodeOptions: string, others: string[]): string {
  const { first, rest } = plugAndPlayFirstOf(nodeOptions)
  return [...others.map(quotePath), first, '--require', quotePath(BY_REQUIRE), rest].filter((words) => words !== '')
    .join(' ')
}

/** Quotes a path the way Node reads NODE_OPTIONS. */
function quotePath (path: string) {
  return `"${path.replace(/[\\"]/g, '\\$&')}"`
}
