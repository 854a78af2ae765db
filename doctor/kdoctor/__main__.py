"""``python -m kdoctor``: the command line."""

from keras_doctor.entry import main

if __name__ == "__main__":
    main()
