import type { CommandPlace, Value } from './places.ts'

const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

/** The words that fish offers for a value; undefined where only the user knows. */
function offered(value: Value): string | undefined {
  if (value === 'anything') return undefined
  if (value === 'folder') return '(__fish_complete_directories (commandline -ct))'
  if (value.startsWith('some-of:')) return `(__servo_list ${value.slice('some-of:'.length).replaceAll(',', ' ')})`
  return value.startsWith('one-of:') ? value.slice('one-of:'.length).replaceAll(',', ' ') : `(__servo_ask ${value})`
}

export function fishScript(places: readonly CommandPlace[]): string {
  const lines = places.flatMap((place) => {
    const start = `complete -c servo -n ${quoted(`__servo_at ${quoted(place.where)}`)}`
    const argument = place.commands.length > 0 ? undefined : offered(place.argument)
    return [
      ...place.commands.map(({ name, description }) => `${start} -a ${name} -d ${quoted(description)}`),
      ...(argument === undefined ? [] : [`${start} -a ${quoted(argument)}`]),
      ...place.flags.map(({ name, short, description, value }) => {
        const words = value === undefined ? undefined : offered(value)
        return [
          start,
          ...(short === undefined ? [] : [`-s ${short.slice(1)}`]),
          `-l ${name.slice(2)}`,
          ...(value === undefined ? [] : ['-x']),
          ...(words === undefined ? [] : [`-a ${quoted(words)}`]),
          `-d ${quoted(description)}`,
        ].join(' ')
      }),
    ]
  })
  const paths = places.filter(({ where }) => where !== '').map(({ where }) => quoted(where))
  return `# Completes servo in fish: servo completion fish | source
function __servo_at
    set -l where ''
    for word in (commandline -opc)[2..-1]
        switch "$where $word"
            case ' help'
            case ${paths.join(' ')}
                set where "$where $word"
        end
    end
    test "$where" = "$argv[1]"
end
function __servo_ask
    set -l before (commandline -opc)
    set -l current (string replace -r -- '^--[^=]*=' '' (commandline -ct))
    $before[1] complete -- $argv[1] "$current" $before[2..-1] 2> /dev/null
end
function __servo_list
    set -l current (string replace -r -- '^--[^=]*=' '' (commandline -ct))
    set -l before (string match -r -- '^.*,' "$current")
    for word in $argv
        echo "$before$word"
    end
end
complete -c servo -f
${lines.join('\n')}
`
}
