# A legacy MCP server over stdio that needs under 1 MB of memory, so that a thousand of them fit on one machine. It has no tools.

while IFS= read -r line; do
  case $line in
    *'"id":'*) ;;
    *) continue ;;
  esac
  id=${line#*'"id":'}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      result='"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"small","version":"1.0.0"}}'
      ;;
    *'"method":"ping"'*) result='"result":{}' ;;
    *) result='"error":{"code":-32601,"message":"Method not found"}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$result"
done
