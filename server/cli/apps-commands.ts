import { addDeckOptions } from './deck-options.ts'
import type { Terminal } from './program.ts'
import type { DeckCommand } from './deck-command.ts'

/** Adds the commands for several apps. */
export function addAppsCommands (program: DeckCommand, terminal: Terminal, outcome: { exitCode: number }) {
  program.told('up').action(async (names, options) => {
    const { upCommand } = await import('./up.ts')
    await upCommand(names, options, terminal)
  })
  program.told('down').action(async (names, options) => {
    const { downCommand } = await import('./down.ts')
    await downCommand(names, options, terminal)
  })
  program.told('adopt').action(async (folder, options) => {
    if (options.pm2 !== undefined || options.port !== undefined || options.pid !== undefined) {
      const { adoptPrograms } = await import('./adopt-program.ts')
      outcome.exitCode = await adoptPrograms(folder, options, terminal)
      return
    }
    const { adoptCommand } = await import('./adopt.ts')
    await adoptCommand(folder, options, terminal)
  })
  program.told('ls').alias('list').action(async (options) => {
    const { lsCommand } = await import('./ls.ts')
    await lsCommand(options, terminal)
  })
}

/** Adds the page of apps for a terminal. What draws it is loaded by this command alone. */
export function addTopCommand (program: DeckCommand, terminal: Terminal, outcome: { exitCode: number }) {
  addDeckOptions(program.told('top')).action(async (names, options) => {
    const { topCommand } = await import('./top.ts')
    outcome.exitCode = await topCommand(names, options, terminal)
  })
}
