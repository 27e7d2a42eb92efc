import { isObject } from '../config/is-object.ts'
import { commandWords } from './values.ts'

/**
 * What `pm2 deploy` would do over ssh, as far as `clusterdeck deploy --git` does it on the machine itself: it fetches
 * the same repository, runs the same commands, in a new folder.
 * `set`: values by the name of the option
 */
type DeploySection = { name: string, set: Record<string, unknown>, notes: { option: string, text: string }[] }

/** What it tells the PM2 that runs: a deploy of ours does that itself. */
const RELOADS = /^(?:sudo\s+)?(?:npx\s+)?pm2\s+(?:re?start|reload|gracefulReload|startOr\w+|save)\b[^'"`$()]*$/
const REF = /^[\w./-]{1,200}$/

/** `deploy`: the section of the file. Returns the names of its environments. */
export function deployNames (deploy: unknown): string[] {
  return isObject(deploy) ? Object.keys(deploy).filter((name) => isObject(deploy[name])) : []
}

/** `envName`: of several environments the one that counts. Returns `left`: why nothing is taken from it. */
export function readDeploySection (deploy: unknown, envName: string | undefined): DeploySection | { left: string } {
  const names = deployNames(deploy)
  const name = envName !== undefined && names.includes(envName) ? envName : names.length === 1 ? names[0] : null
  if (name === null)
    return {
      left: names.length === 0
        ? 'it has no environment'
        : `it has ${names.length} environments. Nearest: clusterdeck import --env ${names[0]}`
    }
  const { repo, ref, 'post-deploy': hook, ...rest } = (deploy as Record<string, Record<string, unknown>>)[name]
  if (typeof repo !== 'string' || repo === '') return { left: `${name} has no repo` }
  const others = Object.keys(rest).filter((key) => key !== 'env')
  const build = buildOf(hook)
  return { name, set: { 'releases.git': repo, ...(build.command && { 'hooks.build': { command: build.command } }) },
    notes: [{ option: 'releases.git',
      text: `In place of pm2 deploy ${name}, on the machine itself: clusterdeck deploy --git ${
        branchOf(ref)
      } --wait, each time into a folder of its own.${others.length > 0 ? ` Left out: ${others.join(', ')}.` : ''}` }, {
      option: build.command ? 'hooks.build' : 'releases.git',
      text: build.note
    }] }
}

/** `hook`: `post-deploy`. Returns null: as the lock file suggests. */
function buildOf (hook: unknown): { command: string[] | null, note: string } {
  const guess = 'without hooks.build, the lock file and the script "build" say how, which is shown first.'
  if (typeof hook !== 'string' || hook.trim() === '')
    return { command: null, note: `There is no post-deploy: ${guess}` }
  const steps = hook.split(/\s*(?:&&|;|\n)\s*/).filter((step) => step !== '')
  const others = steps.filter((step) => !RELOADS.test(step))
  if (others.length === 0) return { command: null, note: `post-deploy only tells PM2 to reload: ${guess}` }
  // Within quotes, or where PM2 is told something else, only a person knows what is meant.
  const isUnclear = steps.some((step) => (step.match(/['"`]/g) ?? []).length % 2 !== 0) ||
    others.some((step) => /\bpm2\b|\|\||^[&|]|[&|]$/.test(step))
  if (isUnclear)
    return { command: null,
      note: `post-deploy is left out, as it could not be read: ${hook}. Nearest: hooks.build; ${guess}` }
  const line = others.join(' && ')
  return { command: commandWords(line) ?? [/\bsource\s/.test(line) ? 'bash' : 'sh', '-c', line],
    note: `post-deploy${
      others.length < steps.length ? ' without what it tells PM2' : ''
    }, in the folder of the new release before it serves. What changes a database belongs to hooks.beforeDeploy. For npm ci and the script "build" it can go: these are guessed, and packages of the same lock file are kept.` }
}

/** @returns as the fetched repository has it */
function branchOf (ref: unknown): string {
  return typeof ref === 'string' && REF.test(ref) && !ref.startsWith('-')
    ? ref.replace(/^(?:refs\/remotes\/)?origin\//, '')
    : 'main'
}
