import { DeckError } from '../errors.ts'

/** Why something cannot be started, and what to do instead. */
export type Reason = keyof typeof OBSTACLES
const OBSTACLES = Object.freeze({
  expansion: ['needs a shell',
    'Start the program itself, with its values in "args" and "env" of clusterdeck.config.mjs'],
  empty: ['runs nothing', 'Name the app\'s main file'],
  option: ['has an option that has no meaning here', 'Start the program itself'],
  'no-file': ['starts no file', 'Start the file itself'],
  'not-executable': ['may not be executed',
    'Make it executable (chmod +x), or name what runs it, such as "python3 app.py"'],
  'not-installed': ['is not installed there', 'Install it in the app: clusterdeck downloads nothing'],
  'not-found': ['is not there', 'Name the app\'s main file'],
  'not-built': ['has not been built', 'Build it before the start and before each deploy'],
  'starts-child': ['starts another process, which does the work', 'Start that program itself'],
  typescript: ['is TypeScript, which this Node does not run by itself',
    'Use Node 22.18 or later, install tsx in the app (npm install tsx), or start the compiled file'],
  circle: ['leads back to itself', 'Start the program itself']
})

/**
 * Where it was said what to start, and how its messages begin: `entry`, `script in /srv/clusterdeck.config.mjs`.
 * `received`: in the user's words. Returns invalid-config, with `details: { reason }`.
 */
export function launchRefusal (reason: Reason,
  { source, received, why = OBSTACLES[reason][0], instead = OBSTACLES[reason][1] }: { source: string, received: string,
    why?: string, instead?: string }): DeckError
{
  return new DeckError('invalid-config',
    `${source}: expected a program, received ${received}, which ${why}. ${instead}`, { details: { reason } })
}
