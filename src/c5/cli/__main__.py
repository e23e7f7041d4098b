from c5.cli import main

main()
