import type { Command } from 'commander'

type DeckOptions = Partial<Record<'app' | 'name' | 'dataDir' | 'url', string>>

/** The options of which each names one deck, with the variables that do the same. */
const OF_ONE_DECK: readonly { option: keyof DeckOptions, flag: string, variable: string }[] = Object.freeze([{
  option: 'app',
  flag: '--app',
  variable: 'CLUSTERDECK_APP'
}, { option: 'name', flag: '--name', variable: 'CLUSTERDECK_NAME' }, { option: 'dataDir', flag: '--data-dir',
  variable: 'CLUSTERDECK_DATA_DIR' }, { option: 'url', flag: '--url', variable: 'CLUSTERDECK_URL' }])

/** Adds the options that say which master a command is for. Returns the same. */
export function addDeckOptions<C extends Command> (command: C, { dataDir }: { dataDir?: string } = {}): C {
  return command.optionsGroup('Which master:').option('--data-dir <path>',
    `its data folder (${dataDir === undefined ? '' : `default: ${dataDir}; `}env: CLUSTERDECK_DATA_DIR)`).option(
      '--app <name>',
      'the app of the config file that it runs (env: CLUSTERDECK_APP)'
    ).option('-n, --name <name>', 'its name in "clusterdeck ls", from any folder (env: CLUSTERDECK_NAME)').option(
      '--url <url>',
      'the address of its admin page (env: CLUSTERDECK_URL)'
    ).option('--token <token>',
      'its admin token; the other users of this machine can see it, so prefer --token-file (env: CLUSTERDECK_TOKEN)')
    .option('--token-file <file>', 'a file with its admin token (env: CLUSTERDECK_TOKEN_FILE)')
}

/** @returns the flag that names one deck */
export function flagOfDeck (options: DeckOptions): string | null {
  return OF_ONE_DECK.find(({ option }) => options[option] !== undefined)?.flag ?? null
}

/** Tells whether a flag or a variable names one deck */
export function namesDeck (options: DeckOptions, env: Record<string, string | undefined>): boolean {
  return flagOfDeck(options) !== null || OF_ONE_DECK.some(({ variable }) => env[variable])
}
