import { readFileSync } from 'node:fs'
import path from 'node:path'
import { attempt } from '../errors.ts'
import { isFile } from './packages.ts'
import type { Reason } from './refusal.ts'

/** Without `words` it is run as it is. */
export type Substitute =
  | { note: string }
  | { words: string[], note?: string }
  | { reason: Reason, why?: string, instead?: string }

/** What is said where a Node program can only be reached through another one. */
export const SEES_NO_NODE =
  'clusterdeck does not see into a Node that another program starts; start its file itself where that is possible'

const SEVERAL = () => ({
  note: 'it starts several programs; each would be deployed and restarted by itself as an app of its own'
})
const MANAGES = () => ({ reason: 'starts-child' as const, why: 'is a process manager itself',
  instead: 'Start what it starts; "clusterdeck import" takes over its configuration' })

/**
 * What to start instead of programs that serve from another process than the one that is started, by the name of the
 * program. It is null where a program called like this serves by itself.
 */
export const SUBSTITUTES = Object.freeze(
  { nest: ([verb, ...args], cwd) => verb === 'start' || verb === 's' ? builtByNest(args, cwd) : null,
    nuxt: ([verb = 'dev', ...args], cwd) => NUXT[verb]?.(args, cwd) ?? null, nuxi: ([verb = 'dev', ...args], cwd) =>
      NUXT[verb]?.(args, cwd) ?? null, next: ([verb = 'dev']) =>
      verb === 'dev' || verb.startsWith('-') ? developmentServer('next build', 'next start') : null,
    'react-scripts': ([verb]) =>
      verb === 'start' ? developmentServer('react-scripts build', 'a server of files, such as "serve -s build"') : null,
    gatsby: ([verb]) =>
      verb === 'develop' ? developmentServer('gatsby build', 'gatsby serve') : null,
    'babel-node': () => ({
      note:
        'start the file itself with --exec-argv "-r @babel/register", or the compiled one: clusterdeck does not see into the Node that babel-node starts'
    }),
    dotenvx: () => ({
      note:
        'with "envFile" for its variables a Node file can be started itself: clusterdeck does not see into one that dotenvx starts'
    }),
    ...Object.fromEntries(
      ['doppler', 'infisical', 'op'].map((
        name
      ) => [name,
        () => ({
          note:
            `with "${name} run -- clusterdeck start" a Node file can be started itself: clusterdeck does not see into one that ${name} starts`
        })]
      )
    ),
    'egg-scripts': () => ({
      note:
        'it starts its server as another process, so that all of it is one worker; leave out --daemon, and let --workers of both be small'
    }), concurrently: SEVERAL, 'npm-run-all': SEVERAL, 'npm-run-all2': SEVERAL, 'run-s': SEVERAL, 'run-p': SEVERAL,
    turbo: SEVERAL, nx: SEVERAL, lerna: SEVERAL, wireit: SEVERAL, pm2: MANAGES, 'pm2-runtime': MANAGES,
    'pm2-dev': MANAGES, forever: MANAGES } as Record<string, (args: string[], cwd: string) => Substitute | null>
)

const NUXT: Readonly<Record<string, (args: string[], cwd: string) => Substitute>> = Object.freeze({
  dev: () => developmentServer('nuxt build', 'nuxt start'),
  start: builtByNuxt,
  preview: builtByNuxt
})

function developmentServer (build: string, start: string): Substitute {
  return {
    note: `it is for development; to serve others, run "${build}" and start ${
      start.includes(' "') ? start : `"${start}"`
    }`
  }
}

function builtByNuxt (args: string[], cwd: string): Substitute {
  const file = '.output/server/index.mjs'
  if (args.length > 0)
    return { note: `${file} is a Node file that can be started itself; HOST and PORT say where it listens` }
  return isFile(path.join(cwd, file))
    ? { words: ['node', file] }
    : { reason: 'not-built', why: `runs ${file}, which is not there`,
      instead: 'Run "nuxt build" before the start and before each deploy' }
}

const NEST_NOTE = 'it would build first; run "nest build" before the start and before each deploy'

type Nest = { sourceRoot?: string, entryFile?: string }

/** It builds, and starts another Node with what it has built. */
function builtByNest (words: string[], cwd: string): Substitute {
  const end = words.includes('--') ? words.indexOf('--') : words.length
  const project = words[0]?.startsWith('-') || end === 0 ? undefined : words[0]
  const { sourceRoot = 'src', entryFile = 'main', projects = {} } = readJson(path.join(cwd, 'nest-cli.json'))
  const own = projects[project ?? ''] ?? {}
  const outDir = outDirOf(cwd)
  const [root, file] = [own.sourceRoot ?? sourceRoot, own.entryFile ?? entryFile]
  const places = [path.join(outDir, root, `${file}.js`),
    ...(project === undefined ? [] : [path.join(outDir, 'apps', project, `${file}.js`)]),
    path.join(outDir, `${file}.js`)]
  const built = places.find((place) => isFile(path.join(cwd, place)))
  if (!built)
    return { reason: 'not-built', why: `runs ${places.at(-1)}, which is not there`,
      instead: 'Run "nest build" before the start and before each deploy' }
  return { words: ['node', '--enable-source-maps', built, ...words.slice(end + 1)], note: NEST_NOTE }
}

function outDirOf (cwd: string): string {
  // A tsconfig may have comments, so no JSON.parse.
  for (const name of ['tsconfig.build.json', 'tsconfig.json']) {
    const outDir = /"outDir"\s*:\s*"([^"]+)"/.exec(readText(path.join(cwd, name)))?.[1]
    if (outDir) return path.normalize(outDir)
  }
  return 'dist'
}

function readJson (file: string): Nest & { projects?: Record<string, Nest> } {
  // None, or with comments: the defaults are as good a guess as any.
  return attempt(() => JSON.parse(readText(file)), {})
}

function readText (file: string) {
  return isFile(file) ? readFileSync(file, 'utf8') : ''
}
